"""Figures about tools and employees, and metrics of the installation."""
