"""Text written by others, made safe and readable."""
