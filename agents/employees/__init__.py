"""Employees and what they may use: their tools, their limits, their models."""
