"""Warnings about cards, for pages and rules: signs of deception, far reach, new contacts, odd
values, and changed targets."""
