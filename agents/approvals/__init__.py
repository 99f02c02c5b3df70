"""Approvals: the cards, and how people decide them."""
