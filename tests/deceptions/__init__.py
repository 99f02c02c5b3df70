"""Cards must not fool their reader: planted deceptions in a real browser, and honest cards."""
