"""Queries compiled once instead of at each use, one module for each subject.

They serve the hot paths: each pass, each read of a socket, each sweep, each request with a token. Rows have names, so
nobody outside sees a tuple. Everything else uses the ORM as usual.
"""
