"""Cards, which people read and fill in before they decide."""
