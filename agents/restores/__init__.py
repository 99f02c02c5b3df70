"""Restored limits of people and employees, which an admin confirms line by line before the stop can
be lifted."""
