"""Readers of the logs: what follows from events is written after their commit, each time once and in order."""
