"""The tables of the first release, frozen: today's code must migrate a database with them to
today's schema.

The files were written once and never change, because migrations are only added.
"""
