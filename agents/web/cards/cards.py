"""Cards: approvals gathered with everything that a person needs to decide, for one template."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from django.db.models import Q
from django.utils import timezone

from agents.approvals.decisions import make_confirmation_phrase
from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.approvals.requesters import Requester, describe_requesters, find_requesters
from agents.employees.toolboxes import load_toolbox
from agents.runs.engine.cards import SEND
from agents.runs.models import Pass, Run, ToolCall
from agents.runs.models.tool_call import CARDED_LEVELS
from agents.web.cards.differences import Change, differences
from agents.web.cards.edit_form import fields_of
from agents.web.cards.effects import Effect
from agents.web.cards.fates import Fate, fate_of
from agents.web.cards.fields import Field, Typed
from agents.web.cards.questions import Question, question_of
from agents.web.cards.similar_names import Similar, similar_names
from agents.web.panel.child_runs import describe_delegations
from agents.web.text.safe_text import own_words
from tools.contract import Level, Tool

MOST_EARLIER = 5
DECIDED = (ApprovalStatus.DENIED, ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED)
GRACE_S = {Level.WRITE.value: 5, Level.DESTRUCTIVE.value: 10}
LEVEL_REASONS = {
    Level.READ.value: "Reads data, changes nothing",
    Level.DRAFT.value: "Prepares something that stays in Gadget",
    Level.WRITE.value: "Creates or changes data",
    Level.DESTRUCTIVE.value: "Deletes data or changes many items",
}
ICONS = {
    Level.READ.value: "eye",
    Level.DRAFT.value: "file-pen",
    Level.WRITE.value: "pencil-line",
    Level.DESTRUCTIVE.value: "triangle-alert",
}
VERDICT_ICONS = {
    "Approved": "circle-check",
    "Settled": "circle-check",
    "Acknowledged": "circle-check",
    "Answered": "circle-check",
    "Denied": "circle-x",
    "Expired": "hourglass",
    "Replaced": "rotate-ccw",
}
LONGEST_OBJECT = 40
NOUNS = {"data": ("record", "records"), "files": ("file", "files")}
REQUESTS = ("request", "requests")
DENY_REASONS = ("Wrong target", "Wrong values", "Not needed", "Not now", "Explain first why this is needed")


@dataclass(frozen=True)
class Card:
    """One approval as it is now.

    Attributes:
        earlier: the last decisions about the same tool for the same employee, while this one is open.
        previous: the card of the same call that this one replaces.
        successor: the newest card of the same call, if this one was replaced.
        all_targets: every affected thing, not only the first 250.
        typed: what a person typed into the edit form, and what is wrong with it.
        reported: what the call has reported, where that is not told beside the card.
        said: an answer that was typed and could not be given.
        asked_by: who handed the task to whom, if somebody did: `Dana asked Kim`.
        similar: names on it that look like another record's, while it is open.
        requesters: those who may not decide it, because they asked for the call and two people are needed.
    """

    approval: Approval
    call: ToolCall
    run: Run
    tool: Tool | None
    words: str = ""
    earlier: list[Approval] = field(default_factory=list)
    previous: Approval | None = None
    successor: Approval | None = None
    all_targets: bool = False
    typed: Typed = field(default_factory=Typed)
    reported: str = ""
    said: str = ""
    asked_by: str = ""
    requesters: list[Requester] = field(default_factory=list)
    similar: list[Similar] = field(default_factory=list)
    now: datetime = field(default_factory=timezone.now)

    @property
    def is_open(self) -> bool:
        is_approval = self.approval.kind == ApprovalKind.APPROVAL
        return is_approval and self.approval.status == ApprovalStatus.PENDING

    @property
    def is_unknown(self) -> bool:
        """True if a person has to check: nobody knows whether the call happened, or it happened late."""
        return self.approval.kind == ApprovalKind.UNKNOWN and self.approval.status == ApprovalStatus.PENDING

    @property
    def is_late_effect(self) -> bool:
        """True if the call happened although it was declared not done, and nobody has acknowledged that."""
        return self.is_unknown and self.call.late_effect is not None

    @cached_property
    def question(self) -> Question | None:
        """What a person is asked, or was; None for every other card."""
        return question_of(self.approval)

    @property
    def obstacle(self) -> str:
        """Why the call of an open card would not start as it is shown, however it is decided; mostly empty."""
        if self.tool is None:
            known = load_toolbox(self.call.organization_id).policy.withheld
            return known.get(self.call.tool, f"There is no tool {self.call.tool} any more.")
        if self.tool.definition_hash != self.call.definition_hash:
            return "The tool has changed since this was asked: once approved, it is asked again with what it is now."
        return ""

    @property
    def connected_as(self) -> str:
        """See `connected_name`."""
        return connected_name(self.tool)

    @property
    def verdict(self) -> str:
        """What a person decided, or what became of the card without a decision."""
        if self.approval.kind == ApprovalKind.UNKNOWN and self.approval.status == ApprovalStatus.CANCELLED:
            return "Settled"
        if self.approval.kind == ApprovalKind.UNKNOWN and self.approval.status == ApprovalStatus.ANSWERED:
            return "Acknowledged"
        was_approved = self.approval.status in (ApprovalStatus.CONSUMED, ApprovalStatus.APPROVED)
        return "Approved" if self.was_withdrawn or was_approved else self.approval.get_status_display()

    @property
    def verdict_icon(self) -> str:
        return VERDICT_ICONS.get(self.verdict, "ban")

    @property
    def was_withdrawn(self) -> bool:
        """It was approved, but something came between before its call started."""
        ended = (ApprovalStatus.SUPERSEDED, ApprovalStatus.CANCELLED)
        return self.approval.start_after is not None and self.approval.status in ended

    @property
    def not_by(self) -> str:
        """The names of those who asked for the call, if they may not decide it; usernames have no spaces."""
        return " ".join(requester.name for requester in self.requesters)

    @property
    def two_person_rule(self) -> str:
        """The actions of those people, in words."""
        return describe_requesters(self.requesters)

    @property
    def fate(self) -> Fate | None:
        """What became of the call, unless this card did not let it start."""
        return fate_of(self.approval, self.call.status, self.reported, is_graced=self.undo_left_s > 0)

    @property
    def is_destructive(self) -> bool:
        return self.approval.level == Level.DESTRUCTIVE.value

    @property
    def icon(self) -> str:
        """The symbol of the card's level."""
        return ICONS.get(self.approval.level, "circle-question-mark")

    @property
    def level_reason(self) -> str:
        return LEVEL_REASONS.get(self.approval.level, "")

    @property
    def title(self) -> str:
        return self.tool.title if self.tool else self.call.tool

    @cached_property
    def effect(self) -> Effect:
        """What the call would change, as it was sealed."""
        preview = self.approval.preview if isinstance(self.approval.preview, dict) else {}
        is_sent = preview.get("effect") == SEND
        nouns = REQUESTS if is_sent else NOUNS.get(self.call.tool.partition(".")[0], ("thing", "things"))
        return Effect(preview, nouns, self.all_targets, lists_requests=is_sent)

    @property
    def act(self) -> str:
        """Verb and object for the Approve button: `update Acme Corp`, `delete 212 records`."""
        target = self.effect.target
        if self.effect.is_unforeseen or not target:
            return self.title
        label = target if len(target) <= LONGEST_OBJECT else f"{target[: LONGEST_OBJECT - 1]}…"
        return f"{self.effect.verb} {label}"

    @cached_property
    def confirm(self) -> str:
        """What must be typed before approving; empty below the destructive level."""
        return make_confirmation_phrase(self.approval) if self.is_destructive else ""

    @property
    def grace_s(self) -> int:
        return GRACE_S.get(self.approval.level, 0)

    @property
    def undo_left_s(self) -> int:
        """Seconds in which the approval can still be undone."""
        if self.approval.status != ApprovalStatus.APPROVED or self.approval.start_after is None:
            return 0
        return max(0, round((self.approval.start_after - self.now).total_seconds()))

    @property
    def is_editable(self) -> bool:
        """It waits, and its tool is still there to say what can be asked for."""
        return self.tool is not None and self.is_open

    @cached_property
    def edit_fields(self) -> list[Field]:
        """The typed form made from the tool's schema; empty if the tool is gone."""
        return fields_of(self.tool.schema, self.approval.params, self.typed) if self.tool is not None else []

    @property
    def problem(self) -> str:
        """What is wrong with the typed values as a whole; what belongs to one field stands beside it."""
        return self.typed.problems.get("", "")

    @property
    def is_editing(self) -> bool:
        """Somebody tried to change it, and something was wrong."""
        return bool(self.typed.problems)

    @property
    def deny_reasons(self) -> tuple[str, ...]:
        return DENY_REASONS

    @cached_property
    def changes(self) -> list[Change]:
        """What differs from the card that this one replaces."""
        if self.previous is None:
            return []
        return differences(self.previous, self.approval)


def cards_of(approvals: Iterable[Approval], *, all_targets: bool = False, with_earlier: bool = True) -> list[Card]:
    """One card for each approval (with its call and run), in the same order.

    Costs three queries, one more if a task was handed over, those of `find_requesters` where the two-person rule holds, and
    with the earlier decisions one more for each tool and employee whose cards are open.
    """
    wanted = list(approvals)
    waiting = [one for one in wanted if one.status == ApprovalStatus.PENDING and one.kind != ApprovalKind.QUESTION]
    askings = describe_delegations([one.run for one in wanted])
    earlier = _earlier_decisions(waiting) if with_earlier else {}
    not_by = find_requesters([one for one in waiting if one.run.organization.four_eyes])
    similar = similar_names([one for one in waiting if one.kind == ApprovalKind.APPROVAL])
    passes = _words({(one.run_id, one.tool_call.pass_number) for one in wanted})
    by_call = _by_call(wanted)
    return [
        Card(
            approval=one,
            call=one.tool_call,
            run=one.run,
            tool=find_call_tool(one.tool_call),
            words=own_words(passes.get((one.run_id, one.tool_call.pass_number), "")),
            earlier=earlier.get(_shape_of(one), []) if one.status == ApprovalStatus.PENDING else [],
            previous=_before(one, by_call[one.tool_call_id]),
            successor=_after(one, by_call[one.tool_call_id]),
            all_targets=all_targets,
            asked_by=askings.get(one.run_id, ""),
            requesters=not_by.get(one.pk, []),
            similar=similar.get(one.pk, []),
        )
        for one in wanted
    ]


def brief_cards(approvals: Iterable[Approval]) -> list[Card]:
    """What a list of decided cards shows of each; asks the database nothing."""
    return [Card(one, one.tool_call, one.run, find_call_tool(one.tool_call)) for one in approvals]


def _by_call(wanted: list[Approval]) -> dict[int, list[Approval]]:
    """These cards and all others of their calls, by call, in their sequence."""
    of_calls: dict[int, list[Approval]] = {}
    others = Approval.objects.filter(tool_call_id__in={one.tool_call_id for one in wanted})
    for one in (*wanted, *others.exclude(pk__in=[one.pk for one in wanted]).order_by()):
        of_calls.setdefault(one.tool_call_id, []).append(one)
    return {call_id: sorted(cards, key=lambda card: card.sequence) for call_id, cards in of_calls.items()}


def find_call_tool(call: ToolCall) -> Tool | None:
    """The tool of that name that the organization has, or None if it is gone."""
    return load_toolbox(call.organization_id).get_tool(call.tool)


def connected_name(tool: Tool | None) -> str:
    """The tool's name, which begins with its source's, if it came from outside: its title is what others wrote."""
    return tool.name if tool and tool.source != Tool.source else ""


def _shape_of(card: Approval) -> tuple[str, int]:
    return card.tool_call.tool, card.run.employee_id


def _earlier_decisions(open_cards: list[Approval]) -> dict[tuple[str, int], list[Approval]]:
    """By tool and employee, the newest decisions of people."""
    found = {}
    for shape, card in {_shape_of(card): card for card in open_cards}.items():
        tool, employee_id = shape
        decided = Approval.objects.filter(
            tool_call__organization_id=card.organization_id,
            tool_call__tool=tool,
            tool_call__level__in=CARDED_LEVELS,
            run__employee_id=employee_id,
            status__in=DECIDED,
        )
        found[shape] = list(decided.select_related("decided_by").order_by("-tool_call_id", "-id")[:MOST_EARLIER])
    return found


def _before(one: Approval, of_call: list[Approval]) -> Approval | None:
    earlier = [other for other in of_call if other.sequence < one.sequence]
    return earlier[-1] if earlier else None


def _after(one: Approval, of_call: list[Approval]) -> Approval | None:
    later = [other for other in of_call if other.sequence > one.sequence]
    return later[-1] if later else None


def _words(places: set[tuple[int, int]]) -> dict[tuple[int, int], str]:
    if not places:
        return {}
    wanted = Q()
    for run_id, number in places:
        wanted |= Q(run_id=run_id, number=number)
    found = Pass.objects.filter(wanted).values_list("run_id", "number", "text")
    return {(run_id, number): text for run_id, number, text in found}
