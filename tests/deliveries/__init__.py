"""Tests of agents/deliveries."""
