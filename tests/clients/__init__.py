"""Tests of the files that an installation serves to agents."""
