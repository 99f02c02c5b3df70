"""Queries compiled once instead of at each use, in the `queries` or `due` module of their subject.

A query is compiled if the ORM would make its caller 5% slower: each pass, each line of a socket,
each sweep, each request with a token. Rows have named columns, so callers see no tuples. Everything
else uses the ORM.
"""
