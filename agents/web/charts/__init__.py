"""Charts and the figures that they show."""
