"""A pass under known rules needs no statement to store its snapshot; a pass under new rules needs a
single insert."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.employees.models import ToolRule
from agents.runs.engine import context
from tests.workshop import Workshop, asking, call
from tools.caches import clear_caches

pytestmark = pytest.mark.django_db(transaction=True)

TRANSACTION_WORDS = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")


def count_statements(workshop: Workshop) -> Counter[str]:
    """Drive a run of two passes, and count its statements by kind: for snapshots, other queries,
    and transaction statements by their keyword."""
    run = workshop.submit()
    with CaptureQueriesContext(connection) as captured:
        workshop.drive(run)
    statements = [query["sql"] for query in captured]
    words = [each.split(" ", 1)[0] for each in statements]
    kinds = ["snapshot" if "policy_policysnapshot" in each else "query" for each in statements]
    return Counter(
        word if word in TRANSACTION_WORDS else kind for word, kind in zip(words, kinds, strict=True)
    )


def test_known_rules_need_no_statement(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop.play(asking(call("probe.clock")))
    workshop.work()
    kept = count_statements(workshop)
    monkeypatch.setattr(context, "keep_snapshot", lambda *_: "")
    assert kept == count_statements(workshop)
    assert not kept["snapshot"]


def test_new_rules_need_one_statement(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.clock")))
    workshop.work()
    known = count_statements(workshop)
    ToolRule.objects.create(
        organization=workshop.organization, tool="data.searchRecords", level="write"
    )
    changed = count_statements(workshop)
    assert changed["snapshot"] == 1
    assert changed["query"] == known["query"]
    clear_caches()
    assert count_statements(workshop)["snapshot"] == 1, "another process stores none twice"
