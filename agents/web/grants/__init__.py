"""The standing grants pages: terms and states in words, and the form for a new grant."""
