"""Warnings on cards: signs of deception, far reach and folded parts, found from what a card shows."""
