"""Queries compiled once instead of at each use, in the `queries` or `due` module of their subject.

A query is compiled if the ORM would make an act that uses it a twentieth slower: each pass, each line of a socket, each
sweep, each request with a token. Rows have names, so nobody outside sees a tuple. Everything else uses the ORM.
"""
