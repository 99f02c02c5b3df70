"""The path of a write through all of our code: task, card, approval, write, answer."""

from __future__ import annotations

import importlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from tests.house.hops import Hop, count_returns, record_hops
from tests.house.table import Figure, Listing, Part

if TYPE_CHECKING:
    from tests.workshop import Workshop

LONGEST_LIST = 30


def follow_write(workshop: Workshop) -> dict[str, list[Hop]]:
    """Drive one run from its task to its answer; return the hops of each step."""
    record = workshop.record()
    tests = importlib.import_module("tests.workshop")
    models = importlib.import_module("agents.runs.models")
    change = tests.call(
        "data.updateRecord", record_id=str(record.pk), changes={"status": "inactive"}
    )
    workshop.play(tests.asking(change))
    hops: dict[str, list[Hop]] = {}

    def follow(step: str, act: Callable[[], object]) -> None:
        hops[step] = record_hops(act)

    follow("task", workshop.submit)
    run = models.Run.objects.latest("pk")
    follow("to the card", lambda: workshop.drive(run))
    card = workshop.card(run)
    follow("approval", lambda: workshop.approve(card))
    follow("write and answer", lambda: workshop.drive(run))
    assert tests.again(run).status == models.RunStatus.SUCCEEDED
    record.refresh_from_db()
    assert record.status == "inactive"
    return hops


def follow_warm_write() -> dict[str, list[Hop]]:
    """Drive two runs on a scratch SQLite database, so that the second run finds warm caches; return
    the hops of the second run."""
    os.environ["GADGET_TEST_DATABASE"] = "sqlite"
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    importlib.import_module("django").setup()
    scratch = importlib.import_module("django.test.utils")
    databases = scratch.setup_databases(verbosity=0, interactive=False)
    try:
        workshop = importlib.import_module("tests.workshop").build_workshop()
        follow_write(workshop)
        return follow_write(workshop)
    finally:
        scratch.teardown_databases(databases, verbosity=0)


def measure_way() -> Part:
    """Count the hops of a write, and list the functions on its path."""
    steps = follow_warm_write()
    hops = [hop for each in steps.values() for hop in each]
    modules = {hop.module for hop in hops}
    figures = (
        Figure("the write: hops", str(len(hops)), "at most 250"),
        Figure("the write: returns", str(count_returns(hops).total()), "at most 120"),
        Figure("the write: modules", str(len(modules)), "at most 55"),
    )
    return Part(
        figures,
        (
            Listing(
                "Hops of the write by step:",
                tuple(f"{len(each):>4}  {step}" for step, each in steps.items()),
            ),
            list_most("Hops by function", Counter(f"{hop.module} {hop.function}" for hop in hops)),
            list_most(
                "Hops from one module into another",
                Counter(f"{hop.caller} → {hop.module}" for hop in hops),
            ),
            list_most("Returns by module", count_returns(hops)),
            *(list_way(step, each) for step, each in steps.items()),
        ),
    )


def list_most(title: str, counts: Counter[str]) -> Listing:
    """List the names with the largest counts."""
    lines = tuple(f"{times:>4}  {name}" for name, times in counts.most_common(LONGEST_LIST))
    return Listing(f"{title}: {counts.total()} in {len(counts)}, the largest {len(lines)}", lines)


def list_way(step: str, hops: list[Hop]) -> Listing:
    """List the functions that a step enters, in order, with one line for each visit to a module."""
    visits = [
        (module, [hop.function for hop in visit])
        for module, visit in groupby(hops, lambda hop: hop.module)
    ]
    return Listing(
        f"The way in order: {step}",
        tuple(
            f"{module} {', '.join(map(describe_times, groupby(functions)))}"
            for module, functions in visits
        ),
    )


def describe_times(entered: tuple[str, Iterator[str]]) -> str:
    """Return the name of a function, with the number of times that it is entered in succession."""
    function, times = entered[0], len(list(entered[1]))
    return f"{function} ({times} times)" if times > 1 else function
