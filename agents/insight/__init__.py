"""Figures of tools and employees, and metrics of the installation."""
