"""Queries that are compiled once instead of at each use; apps define theirs in `queries` and `due`
modules.

A query is compiled if the ORM would make its caller at least 5% slower, as in passes, sockets,
sweeps and requests with a token. Everything else uses the ORM.
"""
