"""Figures about the code: its structure, the jumps that a reader has to follow, and its sizes. None
of them can fail a test."""
