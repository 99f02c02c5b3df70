"""Long lists, page by page."""
