"""The tables of the first release, frozen: today's code must migrate a database with them to
today's schema.

They were written once and never change: migrations only grow.
"""
