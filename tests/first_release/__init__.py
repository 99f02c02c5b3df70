"""The tables of the first release, frozen: today's code must migrate a database with them to
today's schema.

`python -m tests.first_release` wrote them, once. They never change: migrations only grow.
"""
