"""Tests of the gate for agents that run elsewhere."""
