"""Raise the number of files and connections that one process may hold open."""

import resource
from contextlib import suppress

WANTED = 8_192
"""Enough for 2,048 runs in progress: each holds a connection to its model and, with SQLite, two
files."""


def allow_open_files() -> None:
    """Raise this process's limit to WANTED, or as far as the system allows. The usual limits of
    1,024 or 256 are enough for only a few threads."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # some systems allow less than their stated hard limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
