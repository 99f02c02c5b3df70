"""Readers of logs: they write what follows from events after the events' commit, once and in
order."""
