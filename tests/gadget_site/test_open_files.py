"""A process raises its own limit on open files, because many waiting runs need more than the usual
1,024."""

from __future__ import annotations

import resource

from gadget_site.open_files import WANTED, allow_open_files


def test_the_limit_is_raised_as_far_as_the_system_allows() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    try:
        allow_open_files()
        raised, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert raised == (WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard))
