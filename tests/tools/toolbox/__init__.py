"""Tests of the contract's rules and of the toolbox, in pure Python without a database."""
