"""Queries that are compiled once instead of at each use. Apps define such queries in their modules
`queries` and `due`.

A query is compiled if the ORM would make its caller at least 5% slower, as in passes, sockets,
sweeps and requests with a token. Everything else uses the ORM.
"""
