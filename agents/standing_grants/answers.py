"""Answer cards with standing grants: when a call is recorded, and again when it starts."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from agents.accounts import audit
from agents.accounts.models import DECIDERS, Membership, Organization
from agents.approval_rules.loading import HAS_RULES
from agents.approvals.models import Approval, ApprovalStatus
from agents.approvals.warnings.individual_cards import WaitingCard, find_individual_reasons
from agents.approvals.warnings.marks import read_card
from agents.runs.models import Run
from agents.standing_grants.accounts import hash_account
from agents.standing_grants.makers import AnsweredCall, MakerRights, find_rights
from agents.standing_grants.models import StandingGrant
from tools.contract import Level, Tool
from tools.toolbox.approval_rules import RuledCard
from tools.toolbox.permissions import Cause
from tools.toolbox.provenance import Provenance
from tools.toolbox.rulings import Ruling
from tools.toolbox.standing_grants import AskingCall, GrantTerms, explain_end, explain_mismatch, grants_for

logger = logging.getLogger(__name__)

IN_FORCE = Q(revoked_at__isnull=True, ended_at__isnull=True, expires_at__gt=Now())
USED = (ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED)
"""Cards that count as a use: their call may start, or has started."""
ReadGrant = tuple[StandingGrant, GrantTerms]
"""A standing grant with its terms."""
NOT_AVAILABLE = "it had no uses left, had ended, or its maker could not decide this alone"
LOST_RIGHT = "The person who made it can no longer decide cards."


@dataclass(frozen=True)
class AskingCard:
    """A card that needs an answer, stored or not, with its call, its run and the current version of the tool.

    Attributes:
        run: with its organization.
        causes: the causes of the call's current verdict.
    """

    card: Approval
    run: Run
    tool: Tool
    causes: tuple[Cause, ...]

    def build_call(self, organization: Organization) -> AskingCall:
        """Build the call for the comparison with standing grants.

        Args:
            organization: its row as it is now; the run's is as old as the run's context.
        """
        call = self.card.tool_call
        return AskingCall(
            tool=self.tool.name,
            definition=self.tool.definition_hash,
            level=Level(self.card.level),
            account=hash_account(organization, self.tool),
            employee_id=self.run.employee_id,
            run_id=self.run.pk,
            params=self.card.params,
            causes=self.causes,
            provenance=Provenance.from_json(call.provenance) if call.provenance else None,
            destinations=self.tool.destination_params | self.tool.address_params,
        )

    def build_ruled(self) -> RuledCard:
        """Build the call as approval rules see it."""
        card = self.card
        return RuledCard(self.tool.name, self.tool.category, Level(card.level), self.run.employee_id, card.params)


@dataclass(frozen=True)
class Answer:
    """The answer of the standing grants in force to a call that asks.

    Attributes:
        fitting: those whose terms fit, oldest first.
        grant: the one that approves the call; None if a person must decide.
        withheld: the reason why a person decides although one fits.
        ruling: the approval rules by which the grant's maker could decide the call alone; None if none matches.
    """

    call: AskingCall
    ruled: RuledCard
    fitting: tuple[StandingGrant, ...] = ()
    grant: StandingGrant | None = None
    withheld: str = ""
    ruling: Ruling | None = None

    def as_json(self) -> dict[str, Any]:
        """Return what a call keeps of its answer, so that it can be checked again."""
        kept = {
            "fitting": [each.pk for each in self.fitting],
            "grant": self.grant and self.grant.pk,
            "withheld": self.withheld,
            "definition": self.call.definition,
            "account": self.call.account,
            "destinations": sorted(self.call.destinations),
            "ruling": self.ruling and self.ruling.as_json(),
        }
        return {name: value for name, value in kept.items() if value}


def find_answer(asking: AskingCard, grants: Iterable[ReadGrant]) -> Answer | None:
    """Compare the card with the standing grants of its tool; None if there is none, which costs nothing.

    A standing grant ends for good if the tool or its account is no longer what its maker saw. Uses are counted by
    `reserve_uses`.

    Args:
        grants: those in force.
    """
    rows = {terms.pk: (row, terms) for row, terms in grants if terms.tool == asking.tool.name}
    if not rows:
        return None
    call = asking.build_call(next(iter(rows.values()))[0].organization)
    for row, terms in rows.values():
        if because := explain_end(call, terms):
            end_grants(StandingGrant.objects.filter(pk=row.pk), because)
    fitting = tuple(rows[terms.pk][0] for terms in grants_for(call, (terms for _, terms in rows.values())))
    warnings = find_warnings(asking) if fitting else ()
    grant = None if warnings or not fitting else fitting[0]
    return Answer(call, asking.build_ruled(), fitting, grant, ", ".join(warnings))


def find_warnings(asking: AskingCard) -> tuple[str, ...]:
    """Find the warnings on the card; with any of them, only a person can decide it."""
    card, call = asking.card, asking.card.tool_call
    waiting = WaitingCard(card.pk or 0, card.level, card.digest, call.created_at if call.pk else timezone.now())
    found = find_individual_reasons(asking.run.organization, [waiting], {waiting.pk: read_card(card)})
    return found.get(waiting.pk, ())


def explain_ended(asking: AskingCard) -> str:
    """Explain why the standing grant that approved the card does not let its call start; empty if it does.

    Call it in the transaction of the start: the grant stays locked until the commit, so that it is revoked either
    before the start or after it. Warnings are not looked for.
    """
    pk = asking.card.standing_grant_id or 0
    row = lock_in_force(asking.run, [pk]).get(pk)
    if row is None:
        return "it has ended"
    if not _find_rights([row], [AnsweredCall(asking.build_ruled(), asking.card)]).may_answer(row, 0):
        return "its maker could not decide this alone"
    terms = next((terms for _, terms in _read_terms([row])), None)
    return "its terms cannot be read" if terms is None else explain_mismatch(asking.build_call(row.organization), terms)


def reserve_uses(run: Run, answers: Sequence[tuple[Answer, Approval]]) -> list[Answer]:
    """Reserve a use for each answer that approves its card, of the first fitting standing grant that has one left.

    An answer without one is withheld. The standing grants stay locked until the commit of this transaction.
    """
    wanted = {each.pk for answer, _ in answers if answer.grant is not None for each in answer.fitting}
    if not wanted:
        return [answer for answer, _ in answers]
    locked = lock_in_force(run, wanted)
    rights = _find_rights(list(locked.values()), [AnsweredCall(answer.ruled, card) for answer, card in answers])
    free = _count_free_uses(locked)
    reserved = []
    for number, (answer, _) in enumerate(answers):
        entitled = [locked[each.pk] for each in answer.fitting if each.pk in locked]
        entitled = [each for each in entitled if rights.may_answer(each, number)]
        answered = _reserve_use(answer, entitled, free)
        ruling = rights.find_ruling(answered.grant, number) if answered.grant else None
        reserved.append(replace(answered, ruling=ruling))
    return reserved


def _reserve_use(answer: Answer, entitled: Iterable[StandingGrant], free: Counter[int]) -> Answer:
    if answer.grant is None:
        return answer
    chosen = next((each for each in entitled if free[each.pk]), None)
    if chosen is None:
        return replace(answer, grant=None, withheld=NOT_AVAILABLE)
    free[chosen.pk] -= 1
    return replace(answer, grant=chosen)


def _count_free_uses(locked: Mapping[int, StandingGrant]) -> Counter[int]:
    used = dict(
        Approval.objects.filter(standing_grant_id__in=locked, status__in=USED)
        .order_by()
        .values_list("standing_grant_id")
        .annotate(Count("pk"))
    )
    return Counter({pk: max(grant.max_uses - used.get(pk, 0), 0) for pk, grant in locked.items()})


def lock_in_force(run: Run, ids: Collection[int]) -> dict[int, StandingGrant]:
    """Lock those of these standing grants that are in force and whose maker may decide cards.

    A standing grant whose maker has lost the right to decide ends for good.
    """
    makers = Membership.objects.filter(
        organization=OuterRef("organization"), user=OuterRef("made_by"), user__is_active=True, role__in=DECIDERS
    )
    rows = StandingGrant.objects.select_for_update(of=("self",)).select_related("organization", "made_by")
    mine = rows.filter(IN_FORCE, organization_id=run.organization_id, pk__in=list(ids))
    found = {row.pk: row for row in mine.annotate(may_decide=Exists(makers), has_rules=HAS_RULES).order_by("pk")}
    lost = [pk for pk, row in found.items() if not row.may_decide]
    if lost:
        end_grants(StandingGrant.objects.filter(pk__in=lost), LOST_RIGHT)
    return {pk: row for pk, row in found.items() if row.may_decide}


def _find_rights(locked: Sequence[StandingGrant], calls: Sequence[AnsweredCall]) -> MakerRights:
    """Find the rights of the makers of locked standing grants, all of one organization."""
    if not locked:
        return MakerRights([call.ruled for call in calls])
    has_rules = bool(getattr(locked[0], "has_rules", True))
    return find_rights(locked[0].organization, locked, calls, has_rules=has_rules)


def end_grants(grants: QuerySet[StandingGrant], because: str) -> int:
    """End those of these standing grants that are in force, with an entry in the audit; return their number."""
    ended = 0
    with transaction.atomic():
        for pk, organization_id in grants.filter(IN_FORCE).order_by("pk").values_list("pk", "organization_id"):
            if StandingGrant.objects.filter(IN_FORCE, pk=pk).update(ended_at=Now(), ended_because=because):
                entry = audit.NewEntry("gadget", "standing_grant_ended", f"standing_grant:{pk}", {"because": because})
                audit.append(organization_id, [entry])
                ended += 1
    return ended


class GrantsInForce:
    """The standing grants that may answer cards of one run, loaded once, when the first card needs them."""

    def __init__(self) -> None:
        self._loaded: list[ReadGrant] | None = None

    @property
    def loaded_ids(self) -> tuple[int, ...]:
        """The ids, oldest first; empty if no card has needed them."""
        return tuple(row.pk for row, _ in self._loaded or ())

    def load(self, run: Run) -> list[ReadGrant]:
        """Return the standing grants, oldest first; the first time costs one query."""
        if self._loaded is None:
            self._loaded = list(_read_terms(_find_in_force(run)))
        return self._loaded


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
            logger.error("standing grant %s cannot be read and answers nothing: %s", row.pk, error)  # noqa: TRY400
