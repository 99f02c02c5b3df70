"""Warnings about cards, for pages and rules: signs of deception, effects on many objects, new
contacts, odd values, and changed targets."""
