"""Limits of people and employees that a restore brought back: an admin confirms them line by line
before the stop can be lifted."""
