"""Cards: approvals gathered with everything that a person needs to decide, for one template."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import Q
from django.utils import timezone

from agents.approvals import confirm_phrase
from agents.engine.toolbox import installed_toolbox
from agents.models import Approval, ApprovalKind, ApprovalStatus, Pass, Run, ToolCall
from agents.models.tool_call import CARDED_LEVELS
from tools.contract import Level, Tool

from .fields import Field, fields_of
from .safe_text import as_text, own_words

FIRST_TARGETS = 5
MOST_EARLIER = 5
DECIDED = (ApprovalStatus.DENIED, ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED)
MOST_TARGETS = 250
GRACE_S = {Level.WRITE.value: 5, Level.DESTRUCTIVE.value: 10}
LEVEL_REASONS = {
    Level.READ.value: "looks things up, changes nothing",
    Level.DRAFT.value: "prepares something, nothing leaves Gadget",
    Level.WRITE.value: "creates or changes things",
    Level.DESTRUCTIVE.value: "deletes, or changes much at once",
}
NOUNS = {"data": ("record", "records")}
DENY_REASONS = (
    "Wrong target",
    "Wrong values",
    "Not needed",
    "Not now",
    "Explain first why this is needed",
)


@dataclass(frozen=True)
class Change:
    """One field of a target; `before` and `after` are JSON values, None where there is none."""

    name: str
    before: Any
    after: Any

    @property
    def differs(self) -> bool:
        return bool(self.before != self.after)


@dataclass(frozen=True)
class TargetView:
    """One affected thing with what would change in it."""

    id: str
    label: str
    changes: list[Change]


@dataclass(frozen=True)
class Card:
    """One approval as it is now.

    Attributes:
        earlier: the last decisions about the same tool for the same employee, while this one is open.
        previous: the card of the same call that this one replaces.
        successor: the newest card of the same call, if this one was replaced.
        all_targets: every affected thing, not only the first 250.
        values, problems: what a person typed into the edit form and what is wrong with it, by field name.
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
    values: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    now: datetime = field(default_factory=timezone.now)

    @property
    def is_open(self) -> bool:
        return self.approval.status == ApprovalStatus.PENDING and not self.is_unknown

    @property
    def is_unknown(self) -> bool:
        """It is not known whether the call happened, and nobody has said so yet."""
        return self.approval.kind == ApprovalKind.UNKNOWN and self.approval.status == ApprovalStatus.PENDING

    @property
    def verdict(self) -> str:
        """What a person decided, or what became of the card without a decision."""
        decided = (ApprovalStatus.CONSUMED, ApprovalStatus.APPROVED)
        return (
            "Approved" if self.was_withdrawn or self.approval.status in decided else self.approval.get_status_display()
        )

    @property
    def was_withdrawn(self) -> bool:
        """It was approved, but something came between before its call started."""
        ended = (ApprovalStatus.SUPERSEDED, ApprovalStatus.CANCELLED)
        return self.approval.start_after is not None and self.approval.status in ended

    @property
    def is_destructive(self) -> bool:
        return self.approval.level == Level.DESTRUCTIVE.value

    @property
    def icon(self) -> str:
        return "⚠" if self.is_destructive else "✎"

    @property
    def level_reason(self) -> str:
        return LEVEL_REASONS.get(self.approval.level, "")

    @property
    def title(self) -> str:
        return self.tool.title if self.tool else self.call.tool

    @property
    def preview(self) -> dict[str, Any]:
        return self.approval.preview if isinstance(self.approval.preview, dict) else {}

    @property
    def cannot_preview(self) -> bool:
        return bool(self.preview.get("problem")) or "targets" not in self.preview

    @property
    def total(self) -> int:
        return int(self.preview.get("total", 0))

    @cached_property
    def first_targets(self) -> list[TargetView]:
        return [_target(target) for target in self.preview.get("targets", [])[:FIRST_TARGETS]]

    @cached_property
    def more_targets(self) -> list[TargetView]:
        last = None if self.all_targets else MOST_TARGETS
        return [_target(target) for target in self.preview.get("targets", [])[FIRST_TARGETS:last]]

    @cached_property
    def side(self) -> str:
        """`gone` or `made` when every target is only deleted or only created: then each is one row; else empty."""
        targets = self.preview.get("targets", [])
        if all(target.get("before") and not target.get("after") for target in targets):
            return "gone"
        return "made" if all(target.get("after") and not target.get("before") for target in targets) else ""

    @cached_property
    def columns(self) -> list[str]:
        """The fields of all targets, for the table with one row each."""
        targets = self.first_targets + self.more_targets
        return list(dict.fromkeys(change.name for target in targets for change in target.changes))

    @property
    def left_out(self) -> int:
        """Targets that only the card's own page shows."""
        return max(0, self.total - FIRST_TARGETS - len(self.more_targets))

    @property
    def counted(self) -> str:
        """`1 record`, `212 records`, `3 things`."""
        one, many = NOUNS.get(self.call.tool.partition(".")[0], ("thing", "things"))
        return f"{self.total} {one if self.total == 1 else many}"

    @property
    def target(self) -> str:
        """The one target by name, else how many; empty if that cannot be told."""
        targets = self.preview.get("targets", [])
        if len(targets) == 1:
            return str(targets[0]["label"])
        return self.counted if targets else ""

    @property
    def act(self) -> str:
        """Verb and object for the Approve button: `update Acme Corp`, `delete 212 records`."""
        if self.cannot_preview or not self.target:
            return self.title
        label = self.target if len(self.target) <= 48 else f"{self.target[:47]}…"
        return f"{self.preview.get('effect', 'change')} {label}"

    @cached_property
    def confirm(self) -> str:
        """What must be typed before approving; empty below the destructive level."""
        return confirm_phrase(self.approval) if self.is_destructive else ""

    @property
    def grace_s(self) -> int:
        return GRACE_S.get(self.approval.level, 0)

    @property
    def undo_left_s(self) -> int:
        """Seconds in which the approval can still be undone."""
        if self.approval.status != ApprovalStatus.APPROVED or self.approval.start_after is None:
            return 0
        return max(0, round((self.approval.start_after - self.now).total_seconds()))

    @cached_property
    def edit_fields(self) -> list[Field]:
        """The typed form made from the tool's schema; empty if the tool is gone."""
        if self.tool is None or not self.is_open:
            return []
        return fields_of(self.tool.schema, self.approval.params, self.values, self.problems)

    @property
    def deny_reasons(self) -> tuple[str, ...]:
        return DENY_REASONS

    @cached_property
    def changes(self) -> list[Change]:
        """What differs from the card that this one replaces."""
        if self.previous is None:
            return []
        return list(_differences(self.previous, self.approval))


def cards_of(approvals: Iterable[Approval], *, all_targets: bool = False) -> list[Card]:
    """One card for each approval (with its call and run), in the same order.

    Costs two queries, and one more for each tool and employee whose cards are open.
    """
    wanted = list(approvals)
    earlier = _earlier_decisions([one for one in wanted if one.status == ApprovalStatus.PENDING])
    passes = _words({(one.run_id, one.tool_call.pass_number) for one in wanted})
    by_call: dict[int, list[Approval]] = {}
    of_calls = Approval.objects.filter(tool_call_id__in={one.tool_call_id for one in wanted}).order_by("sequence")
    for other in of_calls:
        by_call.setdefault(other.tool_call_id, []).append(other)
    return [
        Card(
            approval=one,
            call=one.tool_call,
            run=one.run,
            tool=tool_of(one.tool_call.tool),
            words=own_words(passes.get((one.run_id, one.tool_call.pass_number), "")),
            earlier=earlier.get(_shape_of(one), []) if one.status == ApprovalStatus.PENDING else [],
            previous=_before(one, by_call[one.tool_call_id]),
            successor=_after(one, by_call[one.tool_call_id]),
            all_targets=all_targets,
        )
        for one in wanted
    ]


def tool_of(name: str) -> Tool | None:
    """The installed tool of that name, or None if it is gone."""
    return installed_toolbox().get_tool(name)


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


def _target(stored: dict[str, Any]) -> TargetView:
    before, after = stored.get("before") or {}, stored.get("after") or {}
    names = list(dict.fromkeys([*before, *after]))
    changes = [Change(name, before.get(name), after.get(name)) for name in names]
    return TargetView(str(stored.get("id", "")), str(stored.get("label", "")), changes)


def _differences(old: Approval, new: Approval) -> Iterable[Change]:
    if old.sentence != new.sentence:
        yield Change("sentence", old.sentence.replace("**", ""), new.sentence.replace("**", ""))
    old_targets, new_targets = _by_id(old), _by_id(new)
    if len(old_targets) != len(new_targets):
        yield Change("how many", len(old_targets), len(new_targets))
    for key, target in list(new_targets.items())[:FIRST_TARGETS]:
        earlier = old_targets.get(key)
        if earlier is not None and earlier != target:
            yield from _target_differences(target["label"], earlier, target)


def _target_differences(label: str, old: dict[str, Any], new: dict[str, Any]) -> Iterable[Change]:
    for side in ("before", "after"):
        was, is_now = old.get(side) or {}, new.get(side) or {}
        for name in dict.fromkeys([*was, *is_now]):
            if was.get(name) != is_now.get(name):
                yield Change(f"{label}, {name} ({side})", as_text(was.get(name)), as_text(is_now.get(name)))


def _by_id(approval: Approval) -> dict[str, dict[str, Any]]:
    targets = approval.preview.get("targets", []) if isinstance(approval.preview, dict) else []
    return {target.get("id") or target.get("label", ""): target for target in targets}
