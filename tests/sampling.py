"""Samples of the largest sets of tests: `make test` always runs the same samples, and `make test
ARGS=--all` the whole sets.

Any two commits that pass have therefore passed the same tests. GADGET_TESTS_SAMPLE=word selects
other samples.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

WHOLE_VARIABLE = "GADGET_TESTS_WHOLE"
SAMPLE_VARIABLE = "GADGET_TESTS_SAMPLE"
USUAL_SAMPLE = "usual"
FIXED_VARIABLE = "GADGET_TESTS_FIXED"
"""The variable that is set if the fixed set runs. Its tests that need a database run on SQLite, and
those under `ON_BOTH` on PostgreSQL as well."""
ON_BOTH = (
    "tests/api/test_health",
    "tests/api/test_list_",
    "tests/approvals/",
    "tests/faults/",
    "tests/first_release/",
    "tests/gadget_site/backups/test_restoring",
    "tests/gadget_site/test_silent_database",
    "tests/gateway/test_",
    "tests/platform/",
    "tests/readers/",
    "tests/runs/",
    "tests/standing_grants/",
    "tests/tools/office/records/",
    "tests/tools/office/test_data_read",
    "tests/webhooks/test_many_workers",
    "tests/worker/",
)
"""Paths of the tests that the fixed set also runs on PostgreSQL: tests of the engine, approvals,
the gate and queries, and of other code that behaves differently there.

With `--all`, every test that needs a database runs on both databases.
"""
CASES_ON_POSTGRESQL = 4
"""The N in "one in N": on PostgreSQL, the fixed set has one in N cases of each test, but at least
one case. On SQLite, it has all cases."""
JOURNEYS = "tests/journeys/"
"""The folder in which the fixed set has only the tests marked `every_commit`, one for each subject.
"""
ONE_OF = {
    "tests/faults/": 40,
    "tests/hostile/": 8,
    "tests/deceptions/": 4,
    "tests/deployment/": 6,
    "tests/admin/test_limits.py::test_an_invalid_sentence": 4,
    "tests/approvals/test_requesters.py::test_a_requester_cannot_approve": 4,
    "tests/gadget_site/backups/test_restoring": 3,
    "tests/gadget_site/test_browser_pages": 4,
    "tests/gadget_site/test_processes": 4,
    "tests/gadget_site/test_queue": 4,
    "tests/gadget_site/test_silent_database": 4,
    "tests/gadget_site/test_up": 4,
    "tests/gadget_site/test_waiting_parts": 4,
    "tests/gateway/live/": 8,
    "tests/platform/test_identity": 4,
    "tests/providers/test_text_calls.py::test_hostile_text": 4,
    "tests/tools/connections/test_other_processes": 4,
    "tests/tools/network/test_web_tools.py::test_a_hostile_page_is_read_in_bounded_time": 4,
    "tests/tools/sources_mcp/test_misbehaving_server": 4,
    "tests/tools/sources_mcp/test_processes": 4,
    "tests/tools/sources_mcp/test_published_server": 4,
    "tests/web/test_files.py::test_a_hostile_path_is_refused": 4,
    "tests/web/test_hostile_text.py::test_a_long_text": 4,
}
"""The N in "one in N", by path: the fixed set has one in N of the tests there, and the whole sets
have all of them.

These tests kill processes, try hundreds of texts on every page, start a whole installation, or wait
for real clients and servers. They are one percent of all tests, but take half of the time.
"""
ONLY_WHOLE = (
    "tests/deployment/test_entry_point.py",
    "tests/gateway/live/test_other_makers.py",
    "tests/runs/test_correlation.py::test_real_processes_pass_the_id_from_a_rest_request_to_the_log_and_the_model",
    "tests/standing_grants/test_conversations.py::test_five_grants_save_most_cards_and_do_not_let_a_harmful_call_run",
    "tests/tools/plugins/test_in_real_processes.py",
    "tests/tools/sources/test_large_descriptions.py",
    "tests/tools/sources/test_openapi_documents.py::test_a_description_full_of_large_bodies_is_read_in_bounded_time",
)
"""Tests that are only in the whole sets: each takes 4 to 25 s of processor time, and quicker tests
check the same rules one by one."""
Item = TypeVar("Item")


def is_whole() -> bool:
    """Return True if GADGET_TESTS_WHOLE=1 asks for the whole sets."""
    return os.environ.get(WHOLE_VARIABLE) == "1"


def get_seed() -> str:
    """Return GADGET_TESTS_SAMPLE, or the word of the default sample."""
    return os.environ.get(SAMPLE_VARIABLE, USUAL_SAMPLE)


def describe() -> str:
    """Name the sample in one line."""
    return "whole sets" if is_whole() else f"sample: {get_seed()}"


def take_sample(items: Sequence[Item], one_of: int, name: str) -> tuple[Item, ...]:
    """Return a random sample of one in `one_of` items, in order and with at least one item; with
    GADGET_TESTS_WHOLE=1, return all items.

    Args:
        name: the name of the set; sets with different names are sampled independently.
    """
    if is_whole():
        return tuple(items)
    chance = random.Random(f"{get_seed()} {name}")
    chosen = chance.sample(range(len(items)), -(-len(items) // one_of))
    return tuple(items[place] for place in sorted(chosen))


def is_fixed_set() -> bool:
    """Return True if the fixed set runs, instead of chosen paths or the whole sets."""
    return FIXED_VARIABLE in os.environ and not is_whole()


def has_file(path: str, database: str) -> bool:
    """Return True if this file's tests run on this database: in the fixed set, only the paths in
    `ON_BOTH` run on PostgreSQL."""
    return not is_fixed_set() or database == "sqlite" or path.startswith(ON_BOTH)


def choose_cases(names: Iterable[str]) -> frozenset[str]:
    """Choose the cases that run on PostgreSQL, from names such as `file::test[case]`: some cases of
    each test."""
    by_test: dict[str, list[str]] = {}
    for name in names:
        by_test.setdefault(name.partition("[")[0], []).append(name)
    return frozenset(
        case
        for test, cases in by_test.items()
        for case in take_sample(cases, CASES_ON_POSTGRESQL, f"cases {test}")
    )


def is_in_share(name: str, database: str) -> bool:
    """Return True if a test without `every_commit` is in the fixed set: the seed chooses
    different tests for each database."""
    if name.startswith((JOURNEYS, *ONLY_WHOLE)):
        return False
    one_of = next((share for path, share in ONE_OF.items() if name.startswith(path)), 1)
    return random.Random(f"{get_seed()} share {database} {name}").random() * one_of < 1
