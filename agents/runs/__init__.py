"""Runs: how people start, steer and stop them, and the engine that drives them."""
