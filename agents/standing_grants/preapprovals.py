"""Approve cards with standing grants when calls are recorded, and check these approvals again when
the calls start."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from agents.accounts import audit
from agents.accounts.models import DECIDERS, Membership, Organization
from agents.accounts.notice_facts import NoticeFact, NoticeKind, tell
from agents.approval_rules.loading import HAS_RULES
from agents.approvals.warnings.card_marks import WaitingCard, find_marks, load_facts
from agents.approvals.warnings.card_reading import read_card
from agents.approvals.warnings.marks import (
    ALLOWED_IN_BULK,
    FOLDED,
    MEANINGS,
    OUTSIDE,
    Mark,
    name_marks,
)
from agents.approvals.warnings.meanings import FixedParams, Meaning
from agents.employees.toolboxes import load_toolbox
from agents.runs.engine.preapprover import AskingCard, Ended, PreapprovalObjection
from agents.runs.models import APPROVED_STATES, Approval, Run
from agents.standing_grants.account_hash import hash_account
from agents.standing_grants.makers import MakerRights, PreapprovedCall, find_rights
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.run_facts import SeenFacts
from tools.contract import Level, Tool
from tools.contract.outside_text import quote_text
from tools.contract.param_naming import ParamNaming
from tools.contract.param_words import NamedThing
from tools.schemas.param_paths import find_unset_params
from tools.sources.external_tool import ExternalTool
from tools.toolbox.approval_rules import RuledCard
from tools.toolbox.grant_sources import EXACT, unpack
from tools.toolbox.objections import Objection
from tools.toolbox.provenance import Provenance
from tools.toolbox.rule_matching import SchemaFacts
from tools.toolbox.rulings import Ruling
from tools.toolbox.standing_grants import (
    OPEN_RULES,
    AskingCall,
    GrantTerms,
    find_end,
    find_mismatch,
    grants_for,
    is_explained,
)

logger = logging.getLogger(__name__)

IN_FORCE = Q(revoked_at__isnull=True, ended_at__isnull=True, expires_at__gt=Now())
MAY_DECIDE = Exists(
    Membership.objects.filter(
        organization=OuterRef("organization"),
        user=OuterRef("made_by"),
        user__is_active=True,
        role__in=DECIDERS,
    )
)
"""Selects the standing grants whose maker can decide cards."""
ReadGrant = tuple[StandingGrant, GrantTerms]
"""A standing grant with its terms."""
OF_VALUES = MEANINGS | {OUTSIDE}
"""The marks of single values, which conditions of a standing grant can settle."""
IGNORED = ALLOWED_IN_BULK | {FOLDED}
"""Marks that do not stop a standing grant. The length of a card matters to people who read it, not
to the conditions of a grant."""
NOT_AVAILABLE = "it was used up, had ended, or its owner could not approve this alone"
READING = 3
"""The version of the comparison, stored with each call. Version 1 treated every null as absent; up
to version 2, only English names showed which params name something."""
NAMES_ONLY = 2
LOST_RIGHT = "The person who made it can no longer decide cards."


@dataclass(frozen=True)
class GrantPreapproval:
    """The result of comparing a call with the standing grants in force.

    Attributes:
        fitting: the standing grants with matching terms, oldest first.
        grant: the standing grant that approves the call; None if a person must decide.
        withheld: the reason why a person must decide although a standing grant matches.
        ruling: the approval rules that let the grant's maker decide the call alone; None if no rule
            matches.
        ended: the standing grants whose tool or account has changed.
        warned: the ids of matching standing grants that a warning on the card rules out.
        naming: the params that a grant leaves free although they name something in this call.
    """

    call: AskingCall
    ruled: RuledCard
    fitting: tuple[StandingGrant, ...] = ()
    grant: StandingGrant | None = None
    withheld: str = ""
    ruling: Ruling | None = None
    ended: Ended = field(default_factory=dict)
    warned: frozenset[int] = frozenset()
    naming: Mapping[str, NamedThing] = field(default_factory=dict)

    @property
    def usable(self) -> list[StandingGrant]:
        """The standing grants that may approve the call, oldest first."""
        return [each for each in self.fitting if each.pk not in self.warned]

    def as_json(self) -> dict[str, Any]:
        """Return the facts to store with the call, so that the approval can be checked again."""
        kept = {
            "fitting": [each.pk for each in self.fitting],
            "grant": self.grant and self.grant.pk,
            "withheld": self.withheld,
            "definition": self.call.definition,
            "account": self.call.account,
            "naming": {path: kind.value for path, kind in self.naming.items()},
            "ruling": self.ruling and self.ruling.as_json(),
            "reading": READING,
            "defaults": sorted(self.call.defaults or ()),
            "seen": self.seen and self.seen.is_used and self.seen.edge.as_json(),
        }
        return {name: value for name, value in kept.items() if value}

    @property
    def seen(self) -> SeenFacts | None:
        """The facts that the run had seen, with which the call was compared."""
        facts = self.call.facts
        return facts if isinstance(facts, SeenFacts) else None


def build_call(asking: AskingCard, organization: Organization) -> AskingCall:
    """Build the call for the comparison with standing grants.

    Args:
        organization: the organization's current row; the row loaded with the run may be older.
    """
    call = asking.card.tool_call
    return AskingCall(
        tool=asking.tool.name,
        definition=asking.tool.definition_hash,
        level=Level(asking.card.level),
        account=hash_account(organization, asking.tool),
        employee_id=asking.run.employee_id,
        run_id=asking.run.pk,
        params=asking.card.params,
        causes=asking.causes,
        provenance=Provenance.from_json(call.provenance) if call.provenance else None,
        naming=ParamNaming.of(asking.tool),
        defaults=find_default_nulls(asking.tool, asking.card.params),
        facts=SeenFacts(asking.run.pk),
    )


def find_default_nulls(tool: Tool, params: Mapping[str, Any]) -> frozenset[str]:
    """List the paths at which the tool's own defaults put null. Empty for external tools: their
    source fills in defaults, so every null in such a call was given explicitly."""
    if isinstance(tool, ExternalTool):
        return frozenset()
    return find_unset_params(tool.schema, params)


def build_ruled(asking: AskingCard) -> RuledCard:
    """Build the card in the form that approval rules compare."""
    card, tool = asking.card, asking.tool
    return RuledCard(
        tool.name,
        tool.category,
        Level(card.level),
        asking.run.employee_id,
        card.params,
        facts=SchemaFacts.of(tool.schema, card.params),
    )


def find_preapproval(asking: AskingCard, grants: Iterable[ReadGrant]) -> GrantPreapproval | None:
    """Compare the card with the standing grants of its tool; return None, without a query, if there
    are none.

    Uses are not counted here, but by `reserve_uses`.

    Args:
        grants: the standing grants in force.
    """
    rows = {terms.pk: (row, terms) for row, terms in grants if terms.tool == asking.tool.name}
    if not rows:
        return None
    call = build_call(asking, next(iter(rows.values()))[0].organization)
    ends = {
        pk: find_end(call, terms)
        for pk, (row, terms) in rows.items()
        if not _is_for_other_version(row, call)
    }
    fitting = tuple(
        rows[terms.pk][0] for terms in grants_for(call, (terms for _, terms in rows.values()))
    )
    marks = _find_marks(asking) if fitting else ()
    meanings = read_card(asking.card).meanings if marks else ()
    warned = frozenset(
        row.pk for row in fitting if _drop_fixed(marks, meanings, call, rows[row.pk][1])
    )
    found = GrantPreapproval(
        call,
        build_ruled(asking),
        fitting,
        ended={pk: ended for pk, ended in ends.items() if ended is not None},
        warned=warned,
        naming=call.naming.find_naming(
            {path for _, terms in rows.values() for path in terms.free_params}, call.params
        ),
    )
    usable = found.usable
    return replace(
        found,
        grant=usable[0] if usable else None,
        withheld="" if usable else name_marks(marks),
    )


def _is_for_other_version(row: StandingGrant, call: AskingCall) -> bool:
    """Return True if the standing grant is for an installed version of the tool other than the
    version of the call."""
    tool = load_toolbox(row.organization_id).get_defined_tool(row.tool, row.definition_hash)
    return tool is not None and row.definition_hash == tool.definition_hash != call.definition


def end(ended: Ended) -> None:
    """End standing grants that a comparison or the start of a call found to have ended."""
    for pk, objection in ended.items():
        end_grants(StandingGrant.objects.filter(pk=pk), objection.why)


def find_warnings(asking: AskingCard) -> tuple[str, ...]:
    """Find the labels of the card's marks because of which only a person can decide it."""
    return tuple(mark.label for mark in find_stopping_marks(asking))


def find_stopping_marks(asking: AskingCard) -> tuple[Mark, ...]:
    """Find the card's marks because of which only a person can decide it.

    If a standing grant has approved it, values whose origin or meaning this grant fixes need no
    mark.
    """
    card, marks = asking.card, _find_marks(asking)
    rows = StandingGrant.objects.none()
    if card.standing_grant_id is not None and any(mark.kind in OF_VALUES for mark in marks):
        rows = StandingGrant.objects.filter(
            organization_id=asking.run.organization_id, pk=card.standing_grant_id
        )
    for row, terms in _read_terms(rows.select_related("organization")):
        call = build_call(asking, row.organization)
        marks = _drop_fixed(marks, read_card(card).meanings, call, terms)
    return marks


def _find_marks(asking: AskingCard) -> tuple[Mark, ...]:
    """Find the marks of the card that can stop a standing grant."""
    card, call = asking.card, asking.card.tool_call
    waiting = WaitingCard(
        card.pk or 0, card.level, card.digest, call.created_at if call.pk else timezone.now()
    )
    organization, readings = asking.run.organization, {waiting.pk: read_card(card)}
    facts = load_facts(organization, [waiting], readings, checks_contacts=False)
    found = find_marks(organization, [waiting], readings, facts).get(waiting.pk, ())
    return tuple(mark for mark in found if mark.kind not in IGNORED)


def _drop_fixed(
    marks: Collection[Mark], meanings: Iterable[Meaning], call: AskingCall, terms: GrantTerms
) -> tuple[Mark, ...]:
    """Drop the marks of values from outside, or with a meaning, that the grant fixes."""
    conditions = terms.conditions
    fixed = FixedParams(
        exact=frozenset(each.param for each in conditions if unpack(each).rule in EXACT),
        whole=frozenset(each.param for each in conditions if each.rule in EXACT),
        limited=frozenset(each.param for each in conditions if each.rule not in OPEN_RULES),
        listed=terms.params,
    )
    left = {each.kind for each in meanings if not each.is_fixed(fixed)}
    if not is_explained(call, terms):
        left.add(OUTSIDE)
    return tuple(mark for mark in marks if mark.kind not in OF_VALUES or mark.kind in left)


def find_objection(asking: AskingCard) -> PreapprovalObjection | None:
    """Find the reason why the standing grant that approved the call does not allow its start; None
    if it does.

    Call this in the transaction of the start: the standing grant stays locked until the commit, so
    that it is revoked either before the start or after it. Warnings are not checked.
    """
    pk = asking.card.standing_grant_id or 0
    locked = lock_in_force(asking.run, [pk])
    row = locked.usable.get(pk)
    if row is None:
        return PreapprovalObjection("it has ended", ended=locked.ended)
    if not _find_rights([row], [PreapprovedCall(build_ruled(asking), asking.card)]).may_preapprove(
        row, 0
    ):
        return PreapprovalObjection("its owner could not approve this alone")
    terms = next((terms for _, terms in _read_terms([row])), None)
    if terms is None:
        return PreapprovalObjection("its terms cannot be read")
    mismatch = find_mismatch(build_call(asking, row.organization), terms)
    return PreapprovalObjection(mismatch.why) if mismatch else None


def reserve_uses(
    run: Run, preapprovals: Sequence[tuple[GrantPreapproval, Approval]]
) -> list[GrantPreapproval]:
    """Reserve a use of the first matching standing grant with uses left, for each preapproval that
    approves its card.

    Return the preapprovals; if no use is left, a preapproval is withheld. The standing grants stay
    locked until the commit. Standing grants whose maker has lost the right to decide are ended.
    """
    wanted = {
        each.pk
        for preapproval, _ in preapprovals
        if preapproval.grant is not None
        for each in preapproval.usable
    }
    if not wanted:
        return [preapproval for preapproval, _ in preapprovals]
    found = lock_in_force(run, wanted)
    end(found.ended)
    locked = found.usable
    rights = _find_rights(
        list(locked.values()),
        [PreapprovedCall(preapproval.ruled, card) for preapproval, card in preapprovals],
    )
    free = _count_free_uses(locked)
    reserved = []
    for number, (preapproval, _) in enumerate(preapprovals):
        entitled = [locked[each.pk] for each in preapproval.usable if each.pk in locked]
        entitled = [each for each in entitled if rights.may_preapprove(each, number)]
        preapproved = _reserve_use(preapproval, entitled, free)
        ruling = rights.find_ruling(preapproved.grant, number) if preapproved.grant else None
        reserved.append(replace(preapproved, ruling=ruling))
    return reserved


def _reserve_use(
    preapproval: GrantPreapproval, entitled: Iterable[StandingGrant], free: Counter[int]
) -> GrantPreapproval:
    if preapproval.grant is None:
        return preapproval
    chosen = next((each for each in entitled if free[each.pk]), None)
    if chosen is None:
        return replace(preapproval, grant=None, withheld=NOT_AVAILABLE)
    free[chosen.pk] -= 1
    return replace(preapproval, grant=chosen)


def _count_free_uses(locked: Mapping[int, StandingGrant]) -> Counter[int]:
    used = dict(
        Approval.objects.filter(standing_grant_id__in=locked, status__in=APPROVED_STATES)
        .order_by()
        .values_list("standing_grant_id")
        .annotate(Count("pk"))
    )
    return Counter({pk: max(grant.max_uses - used.get(pk, 0), 0) for pk, grant in locked.items()})


@dataclass(frozen=True)
class LockedGrants:
    """Standing grants in force, which stay locked until the commit.

    Attributes:
        usable: the standing grants whose maker may decide cards, by id.
        ended: the standing grants whose maker has lost the right to decide; the caller ends them.
    """

    usable: Mapping[int, StandingGrant]
    ended: Ended


def lock_in_force(run: Run, ids: Collection[int]) -> LockedGrants:
    """Lock the standing grants with these ids that are in force."""
    rows = StandingGrant.objects.select_for_update(of=("self",)).select_related(
        "organization", "made_by"
    )
    mine = rows.filter(IN_FORCE, organization_id=run.organization_id, pk__in=list(ids))
    found = list(mine.annotate(may_decide=MAY_DECIDE, has_rules=HAS_RULES).order_by("pk"))
    return LockedGrants(
        usable={row.pk: row for row in found if row.may_decide},
        ended={row.pk: Objection(LOST_RIGHT) for row in found if not row.may_decide},
    )


def _find_rights(locked: Sequence[StandingGrant], calls: Sequence[PreapprovedCall]) -> MakerRights:
    """Find the rights of the makers of locked standing grants, which belong to one organization."""
    if not locked:
        return MakerRights([call.ruled for call in calls])
    has_rules = bool(locked[0].has_rules)  # type: ignore[attr-defined]
    return find_rights(locked[0].organization, locked, calls, has_rules=has_rules)


def end_grants(grants: QuerySet[StandingGrant], because: str) -> int:
    """End the given standing grants that are in force, each with an entry in the audit; return
    their number."""
    ended = 0
    with transaction.atomic():
        columns = ("organization_id", "made_by_id", "tool")
        for grant in grants.filter(IN_FORCE).order_by("pk").only(*columns):
            if StandingGrant.objects.filter(IN_FORCE, pk=grant.pk).update(
                ended_at=Now(), ended_because=because
            ):
                about = f"standing_grant:{grant.pk}"
                entry = audit.NewEntry(
                    "gadget", "standing_grant_ended", about, {"because": because}
                )
                audit.append(grant.organization_id, [entry])
                tell_end(grant, because, grant.made_by_id)
                ended += 1
    return ended


def tell_end(grant: StandingGrant, because: str, user_id: int | None) -> None:
    """Record in the organization's log that this standing grant ended or was revoked.

    Args:
        user_id: the owner to notify; None if they have revoked it themselves.
    """
    tell(
        NoticeFact(
            NoticeKind.GRANT_ENDED,
            grant.organization_id,
            detail=f"grant {grant.pk} for {quote_text(grant.tool)}",
            user_id=user_id,
            reason=because,
            ids={"standing_grant_id": str(grant.pk)},
        )
    )


def load_in_force(run: Run) -> list[ReadGrant]:
    """Load the standing grants that may approve cards of the run, oldest first."""
    return list(_read_terms(_find_in_force(run)))


def _find_in_force(run: Run) -> QuerySet[StandingGrant]:
    mine = Q(employee=None) | Q(employee_id=run.employee_id)
    here = Q(run=None) | Q(run_id=run.pk)
    rows = StandingGrant.objects.filter(IN_FORCE, mine, here, organization_id=run.organization_id)
    return rows.select_related("organization", "made_by").order_by("pk")


def _read_terms(rows: Iterable[StandingGrant]) -> Iterator[ReadGrant]:
    for row in rows:
        try:
            yield row, row.as_terms()
        except ValueError as error:
            logger.error("standing grant %s cannot be read and approves nothing: %s", row.pk, error)  # noqa: TRY400
