"""Readers of the logs: consequences of events are written after their commit, once and in order."""
