"""Figures and metrics, counted from what happened."""
