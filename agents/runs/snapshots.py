"""Store the rules of a judgment once, as a policy snapshot with their hash, and load them again.

A snapshot is only a record. No verdict depends on it, so a failure to store it is logged, and work
continues. A process remembers which snapshots are stored: a pass under known rules costs no SQL
statement, and a pass under new rules costs one.
"""

import json
from functools import partial

from django.db import connection, transaction

from agents.platform.error_boundary import log_and_continue
from agents.runs.models import PolicySnapshot
from tools.caches import Cache
from tools.contract import canonical_json, fingerprint
from tools.toolbox import Grants, Toolbox
from tools.toolbox.snapshots import RecordedRules

MAX_REMEMBERED = 1_000


class UnreadableSnapshot(Exception):
    """A snapshot cannot be read; the text says which one and why.

    Attributes:
        is_missing: True if the snapshot does not exist, False if it is damaged.
    """

    def __init__(self, problem: str, *, is_missing: bool) -> None:
        super().__init__(problem)
        self.is_missing = is_missing


_hashes: Cache[tuple[object, ...], tuple[str, tuple[object, ...]]] = Cache(MAX_REMEMBERED)
"""The hash of rules by the `id()` of their parts. The parts are kept alive, so that Python does not
reuse their ids."""
_stored: Cache[tuple[int, str], bool] = Cache(MAX_REMEMBERED)
"""The snapshots that are known to be committed, by organization and hash."""


def keep_snapshot(
    organization_id: int, grants: Grants, toolbox: Toolbox, standing_grants: tuple[int, ...] = ()
) -> str:
    """Store the rules, unless they are stored already, and return their hash; empty if that
    fails.

    Inside a transaction, a new snapshot is stored as part of that transaction.

    Args:
        standing_grants: the ids of the standing grants that were compared with a card.
    """
    parts = (grants, toolbox.policy, toolbox.tools_by_id)
    key = (organization_id, standing_grants, *map(id, parts))
    known = _hashes.get(key)
    if known is not None and _stored.get((organization_id, known[0])):
        return known[0]
    name = ""
    with log_and_continue("keeping a policy snapshot"):
        rules = RecordedRules.of(
            grants, toolbox.policy, toolbox.tools_by_id, standing_grants
        ).as_json()
        name = fingerprint(rules)
        _hashes.put(key, (name, parts))
        if not _stored.get((organization_id, name)):
            _store(
                PolicySnapshot(
                    organization_id=organization_id, hash=name, rules=canonical_json(rules)
                )
            )
    return name


def _store(snapshot: PolicySnapshot) -> None:
    """Insert the snapshot if it is new; a failure must not break the transaction around it."""
    if connection.in_atomic_block:
        with transaction.atomic():
            PolicySnapshot.objects.bulk_create([snapshot], ignore_conflicts=True)
    else:
        PolicySnapshot.objects.bulk_create([snapshot], ignore_conflicts=True)
    transaction.on_commit(
        partial(_stored.put, (snapshot.organization_id, snapshot.hash), value=True)
    )


def load_snapshot(organization_id: int, name: str) -> RecordedRules:
    """Load the rules with this hash, and verify the hash.

    Raises:
        UnreadableSnapshot
    """
    if not name:
        raise UnreadableSnapshot("no snapshot was kept", is_missing=True)
    rows = PolicySnapshot.objects.filter(organization_id=organization_id, hash=name)
    text = rows.values_list("rules", flat=True).first()
    if text is None:
        raise UnreadableSnapshot(f"snapshot {name[:12]} is missing", is_missing=True)
    try:
        stored = json.loads(text)
        is_genuine = fingerprint(stored) == name
        rules = RecordedRules.from_json(stored)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableSnapshot(
            f"snapshot {name[:12]} cannot be read: {error!r}", is_missing=False
        ) from error
    if not is_genuine:
        raise UnreadableSnapshot(
            f"snapshot {name[:12]} was changed: its content has another hash", is_missing=False
        )
    return rules
