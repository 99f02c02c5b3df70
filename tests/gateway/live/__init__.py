"""Tests of the gate over real HTTP, with third-party clients."""
