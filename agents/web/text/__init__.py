"""Safe and readable display of text, times and statuses."""
