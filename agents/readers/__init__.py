"""Readers of logs: code that acts on each row of a log once, after the row is committed."""
