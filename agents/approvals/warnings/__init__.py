"""Findings about cards, for pages and for rules: deception, reach, new contacts, odd values, and
the current state."""
