"""Approvals: cards, and the decisions of people on them."""
