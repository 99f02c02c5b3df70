"""A second, slow implementation of a standing grant's terms, and random grants and calls on which
it is compared with the real one."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tools.contract import Level
from tools.toolbox import Condition, Rule
from tools.toolbox.permissions import Cause, CauseKind
from tools.toolbox.provenance import Provenance, SeenIn, Sighting
from tools.toolbox.provenance.sightings import OutsideKeys
from tools.toolbox.standing_grants import AskingCall, GrantTerms

PATHS = ("name", "amount", "url", "changes.status", "changes.note", "items.sku")
TO_WHOM = {"amount", "url"}
VALUES: dict[str, tuple[Any, ...]] = {
    "name": ("a", "b", "ab", "", None),
    "amount": (1, 2.5, 10, 100, "10", None),
    "url": ("https://globex.com/a", "https://evil.com/globex.com", "ann@globex.com", "globex.com"),
    "changes.status": ("active", "inactive", None),
    "changes.note": ("in/reports", "in/../out", "out", None),
    "items.sku": ("x", "y"),
}
CONDITIONS = {
    "name": (
        (Rule.EQUALS, "a"),
        (Rule.ONE_OF, ["a", None]),
        (Rule.EQUALS, None),
        (Rule.PREFIX, "a"),
    ),
    "amount": ((Rule.MAXIMUM, 10), (Rule.MINIMUM, 2), (Rule.EQUALS, 10)),
    "url": ((Rule.HOST, "globex.com"), (Rule.EQUALS, "https://globex.com/a")),
    "changes.status": ((Rule.ONE_OF, ["active"]), (Rule.EQUALS, "inactive")),
    "changes.note": ((Rule.PREFIX, "in/"),),
    "items.sku": ((Rule.EQUALS, "x"),),
}
HOSTS = {
    "https://globex.com/a": "globex.com",
    "ann@globex.com": "globex.com",
    "globex.com": "globex.com",
}


@dataclass(frozen=True)
class Case:
    """A random call and a random grant."""

    call: AskingCall
    grant: GrantTerms


def make_case(choose: random.Random) -> Case:
    """Build a random call, and a grant that usually covers it."""
    params = make_params(choose)
    outside = [path for path in PATHS if choose.random() < 0.15]
    seen = tuple(
        Sighting(path, "v", "v", SeenIn.OUTSIDE, tool="web.fetchPage", title="Fetch")
        for path in outside
    )
    origin: Provenance | None = Provenance(
        seen,
        unsearched=int(choose.random() < 0.04),
        is_partial=choose.random() < 0.04,
        unlisted=(OutsideKeys(choose.choice(PATHS), "Fetch", ("k",)),)
        if choose.random() < 0.04
        else (),
    )
    causes = [Cause(CauseKind.LEVEL, "this changes data")]
    if choose.random() < 0.15:
        causes.append(Cause(choose.choice(list(CauseKind)), "another reason"))
    call = AskingCall(
        tool="crm.update",
        definition=mostly(choose, "d1", "d2"),
        level=mostly(choose, Level.WRITE, Level.DESTRUCTIVE, Level.READ),
        account=mostly(choose, "", "x"),
        employee_id=mostly(choose, 1, 2),
        run_id=mostly(choose, 7, 8),
        params=params,
        causes=tuple(causes),
        provenance=None if choose.random() < 0.05 else origin,
    )
    present = flatten(params)
    named = [path for path in PATHS if mostly(choose, path in present, path not in present)]
    conditioned = [path for path in named if mostly(choose, path in TO_WHOM, path not in TO_WHOM)]
    conditions = [Condition(path, *choose.choice(CONDITIONS[path])) for path in conditioned]
    conditions += [
        Condition(path, *choose.choice(CONDITIONS[path]))
        for path in conditioned
        if choose.random() < 0.1
    ]
    grant = GrantTerms(
        pk=1,
        tool=mostly(choose, "crm.update", "crm.delete"),
        definition="d1",
        level=Level.WRITE,
        account="",
        params=frozenset(named),
        conditions=tuple(conditions),
        employee_id=choose.choice([None, 1, 1]),
        run_id=choose.choice([None, None, 7]),
    )
    return Case(call, grant)


def mostly(choose: random.Random, usual: Any, *others: Any) -> Any:
    """Return the usual value nine times out of ten, otherwise one of the other values."""
    return usual if choose.random() < 0.9 else choose.choice(others)


def make_params(choose: random.Random) -> dict[str, Any]:
    """Build params that have some of the paths."""
    picked = {path: choose.choice(VALUES[path]) for path in PATHS if choose.random() < 0.6}
    params: dict[str, Any] = {
        name: picked[name] for name in ("name", "amount", "url") if name in picked
    }
    changes = {
        name.partition(".")[2]: picked[name] for name in picked if name.startswith("changes.")
    }
    if changes:
        params["changes"] = changes
    if "items.sku" in picked:
        params["items"] = [
            {"sku": choose.choice(VALUES["items.sku"])} for _ in range(choose.randint(1, 2))
        ]
    return params


def answers(case: Case) -> bool:
    """Return True if the grant covers the call, decided by the documentation alone."""
    call, grant = case.call, case.grant
    is_same_tool = call.level is Level.WRITE and grant.tool == call.tool and call.definition == "d1"
    is_here = grant.employee_id in (None, call.employee_id) and grant.run_id in (None, call.run_id)
    only_asks = not any(
        str(cause.kind) in ("raised_level", "own_data", "limit") for cause in call.causes
    )
    values = flatten(call.params)
    free = grant.params - {condition.param for condition in grant.conditions}
    fits = all(meets(values.get(condition.param, []), condition) for condition in grant.conditions)
    is_named = not set(values) - grant.params and not free & TO_WHOM
    all_hold = is_same_tool and not call.account and is_here and only_asks and fits and is_named
    return all_hold and comes_from_inside(call, grant, free)


def comes_from_inside(call: AskingCall, grant: GrantTerms, free: frozenset[str]) -> bool:
    """Return True if the params that the grant leaves free, or fixes only partly, have no values
    from outside."""
    fixed = {one.param for one in grant.conditions if str(one.rule) in ("equals", "one_of")}
    loose = free | (
        {one.param for one in grant.conditions if str(one.rule) in ("prefix", "host")} - fixed
    )
    if not loose:
        return True
    origin = call.provenance
    if origin is None or origin.unsearched or origin.is_partial or origin.unlisted:
        return False
    return not any(sighting.param in loose for sighting in origin.sightings)


def flatten(params: Mapping[str, Any]) -> dict[str, list[Any]]:
    """List the values that are present, by path."""
    found: dict[str, list[Any]] = {}
    for name, value in params.items():
        if name == "changes":
            for inner, each in value.items():
                found.setdefault(f"changes.{inner}", []).append(each)
        elif name == "items":
            found["items.sku"] = [entry["sku"] for entry in value]
        else:
            found.setdefault(name, []).append(value)
    return found


def meets(values: list[Any], condition: Condition) -> bool:
    """Return True if there are values and all of them meet the condition."""
    rule, wanted = str(condition.rule), condition.value
    checks: dict[str, Callable[[Any], bool]] = {
        "equals": lambda value: json.dumps(value) == json.dumps(wanted),
        "one_of": lambda value: value in wanted,
        "minimum": lambda value: type(value) in (int, float) and value >= wanted,
        "maximum": lambda value: type(value) in (int, float) and value <= wanted,
        "prefix": lambda value: (
            value is not None
            and bool(re.match(re.escape(wanted), value))
            and ".." not in value.split("/")
        ),
        "host": lambda value: HOSTS.get(value) == wanted,
    }
    return bool(values) and all(checks[rule](value) for value in values)
