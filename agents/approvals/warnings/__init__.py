"""Warnings about cards, for pages and rules: deception, reach, new contacts, odd values, and
changed targets."""
