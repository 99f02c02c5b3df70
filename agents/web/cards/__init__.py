"""Cards: what a person reads and fills in before deciding."""
