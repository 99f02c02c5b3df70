"""A person who reads a card must not be fooled: planted deceptions, each judged in a real browser, and honest cards."""
