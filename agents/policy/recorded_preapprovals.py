"""Check recorded approvals by standing grants again, using the grants' terms and the calls'
recorded facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agents.policy.recorded_calls import CallFilter, CallRow
from agents.policy.recorded_rulings import CheckedApproval
from agents.runs.models import APPROVED_STATES, Approval
from agents.runs.snapshots import UnreadableSnapshot, load_snapshot
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.preapprovals import NAMES_ONLY
from agents.standing_grants.run_facts import Edge, SeenFacts
from tools.contract import Level
from tools.contract.param_naming import FirstNaming, Naming, RecordedNaming
from tools.contract.param_words import NamedThing
from tools.toolbox.permissions import Cause, CauseKind
from tools.toolbox.provenance import Provenance
from tools.toolbox.rulings import Ruling
from tools.toolbox.standing_grants import AskingCall, GrantTerms, find_mismatch, grants_for

MAX_REMEMBERED = 1_000
_KEPT = '"answer"'
"""A text that occurs in every judgment with a recorded approval."""


def find_granted(chosen: CallFilter) -> dict[int, int]:
    """Return, by call id, the id of the standing grant that approved each call of this filter.
    Calls that can no longer start are left out."""
    cards = Approval.objects.filter(
        standing_grant__isnull=False,
        status__in=APPROVED_STATES,
        tool_call__in=chosen.find().order_by(),
    )
    return dict(cards.order_by().values_list("tool_call_id", "standing_grant_id"))


class PreapprovalChecker:
    """Checks again whether standing grants approve recorded calls. The terms of the grants in each
    snapshot are read only once."""

    def __init__(self) -> None:
        self._grants: dict[tuple[int, str], list[GrantTerms]] = {}

    def check(self, row: CallRow, granted: int | None) -> CheckedApproval | None:
        """Check the approval of the call again; return None if no approval was recorded, or if the
        values of the call were erased.

        Args:
            granted: the id of the standing grant that approved the call, according to its card.
        """
        if granted is None and _KEPT not in (row.judgment or ""):
            return None
        try:
            judgment = json.loads(row.judgment or "{}")
            kept = judgment.get("answer")
            if judgment.get("erased") or (kept is None and granted is None):
                return None
            if kept is None:
                return CheckedApproval(
                    f"standing grant {granted} approved it, but no preapproval was recorded"
                )
            return CheckedApproval(self._compare(row, judgment, granted))
        except (UnreadableSnapshot, KeyError, TypeError, ValueError, AttributeError) as error:
            problem = f"the terms or the facts of its preapproval cannot be read: {error}"
            return CheckedApproval(problem)

    def _compare(
        self, row: CallRow, judgment: Mapping[str, Any], granted: int | None
    ) -> str | None:
        kept, call = judgment["answer"], _build_call(row, judgment)
        grants = self._load_grants(row.organization_id, str(judgment.get("snapshot", row.snapshot)))
        recorded, approving = kept.get("fitting", []), kept.get("grant")
        replayed = [each.pk for each in grants_for(call, grants)]
        if replayed != recorded:
            mismatches = [
                find_mismatch(call, each) for each in grants if each.pk in {*recorded} - {*replayed}
            ]
            reasons = [f": {each.why}" for each in mismatches if each is not None]
            return f"fitting grants recorded {recorded}, replayed {replayed}{''.join(reasons[:1])}"
        if approving is not None and approving not in recorded:
            return f"standing grant {approving} approved it, but does not fit"
        if granted not in (None, approving):
            return f"approved by {approving}, but by {granted} on its card"
        if "ruling" not in kept:
            return None
        objection = Ruling.from_json(kept["ruling"]).find_objection(
            call.tool, call.level, call.employee_id, call.params
        )
        return None if objection is None else objection.why

    def _load_grants(self, organization_id: int, snapshot: str) -> list[GrantTerms]:
        key = (organization_id, snapshot)
        if key not in self._grants:
            if len(self._grants) >= MAX_REMEMBERED:
                self._grants.clear()
            rules = load_snapshot(organization_id, snapshot)
            rows = StandingGrant.objects.filter(
                organization_id=organization_id, pk__in=rules.standing_grants
            ).order_by("pk")
            self._grants[key] = [row.as_terms().read_as(rules.reading) for row in rows]
        return self._grants[key]


def _build_call(row: CallRow, judgment: Mapping[str, Any]) -> AskingCall:
    kept, provenance = judgment["answer"], json.loads(row.provenance or "null")
    return AskingCall(
        tool=row.tool,
        definition=str(kept["definition"]),
        level=Level(row.level),
        account=str(kept.get("account", "")),
        employee_id=row.employee_id,
        run_id=row.run_id,
        params=json.loads(row.params),
        causes=tuple(
            Cause(CauseKind(kind), text, param) for kind, text, param in judgment["causes"]
        ),
        provenance=Provenance.from_json(provenance) if provenance else None,
        naming=_read_naming(kept),
        defaults=frozenset(kept.get("defaults", ())) if "reading" in kept else None,
        facts=SeenFacts(row.run_id, Edge.from_json(kept["seen"])) if "seen" in kept else None,
    )


def _read_naming(kept: Mapping[str, Any]) -> Naming:
    if kept.get("reading", 1) <= NAMES_ONLY:
        return FirstNaming(frozenset(kept.get("destinations", ())))
    return RecordedNaming({path: NamedThing(kind) for path, kind in kept.get("naming", {}).items()})
