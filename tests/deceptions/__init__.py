"""Cards must not deceive people who read them: cards with planted deceptions and honest cards are
shown in a real browser."""
