"""Tests of the gate over real HTTP, with clients of other makers."""
