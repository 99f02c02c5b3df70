"""Queries for long lists, page by page."""
