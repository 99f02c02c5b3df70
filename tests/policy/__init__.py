"""Tests of policy snapshots, replay, the simulator and shadow mode."""
