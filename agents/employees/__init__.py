"""Employees and their configuration: models, tools, limits and budgets."""
