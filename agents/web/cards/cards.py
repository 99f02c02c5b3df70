"""Cards: approvals with everything that a person needs to decide them, as one template shows
them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from django.db.models import Q
from django.utils import timezone

from agents.approvals.decisions import DENY_REASONS, make_confirmation_phrase
from agents.approvals.requesters import describe_requesters
from agents.approvals.votes import CardStanding, find_standings
from agents.approvals.warnings.card_marks import CardFacts, load_marks
from agents.approvals.warnings.card_reading import get_preview, read_card
from agents.approvals.warnings.card_values import NamedValue
from agents.approvals.warnings.folding import CHANGED_ROWS, MAX_SENTENCE, Room, Signs, split_values
from agents.approvals.warnings.marks import Mark
from agents.approvals.warnings.restored import find_restore_warning
from agents.approvals.warnings.stale_targets import find_tool_staleness
from agents.approvals.warnings.surroundings import Surroundings, load_surroundings
from agents.employees.toolboxes import load_toolbox
from agents.runs.engine.cards import SEND
from agents.runs.models import (
    APPROVED_STATES,
    Approval,
    ApprovalKind,
    ApprovalStatus,
    Pass,
    Run,
    ToolCall,
)
from agents.runs.queries.cards import MAX_EARLIER
from agents.web.cards.asking_rules import AskingReasons, CallToExplain, describe_reasons
from agents.web.cards.asks import OfAgents
from agents.web.cards.call_reports import CallReport, describe_call
from agents.web.cards.decision_outcomes import OUTCOME_ICONS, name_outcome, was_withdrawn
from agents.web.cards.differences import find_differences
from agents.web.cards.earlier_decisions import load_earlier_decisions
from agents.web.cards.edit_form import build_fields, mark_first_field
from agents.web.cards.effects import Effect, find_nouns
from agents.web.cards.form_fields import FormField, FormInput
from agents.web.cards.origins import ValueOrigins, describe_origins
from agents.web.cards.questions import AskedQuestion, read_question
from agents.web.cards.source_names import find_source_name
from agents.web.cards.value_blocks import ValueBlock, build_block
from agents.web.panel.child_runs import describe_delegations
from agents.web.text.safe_text import cut_sentence, quote_employee
from tools.contract import Level, Tool, name_tool
from tools.contract.outside_text import OutsideText
from tools.contract.sentences import format_name
from tools.sources.external_tool import get_server_title

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


@dataclass(frozen=True)
class Card(OfAgents):
    """One approval in its current state, with the data that its template shows.

    Attributes:
        employee_words: the employee's text from the pass that requested the call.
        earlier_decisions: the newest decisions about cards of the same shape; only while the card
            waits.
        previous: the card of the same call that this card replaces.
        successor: the newest card of the same call, if this card was replaced.
        all_targets: True to show all targets, not only the first 250.
        form_input: the texts that a person typed into the edit form, and the problems with them.
        report_text: the call's report, for pages that do not show the call itself.
        refused_answer, refused_reason, refused_glass: the text of a refused answer, or the reason
            of a refused decision or break-glass.
        delegation: the delegation that started the run, such as `Dana asked Kim`; empty if there is
            none.
        around: further facts that a person must know; loaded only while the card waits for
            approval.
        marks: the marks of a card that no longer waits for approval, see `load_marks`.
        standing: the approval rules and votes of the card; None if one approver decides, or if the
            card does not wait for approval.
    """

    approval: Approval
    call: ToolCall
    run: Run
    tool: Tool | None
    employee_words: str = ""
    earlier_decisions: list[Approval] = field(default_factory=list)
    previous: Approval | None = None
    successor: Approval | None = None
    all_targets: bool = False
    form_input: FormInput = field(default_factory=FormInput)
    report_text: str = ""
    refused_answer: str = ""
    refused_reason: str = ""
    refused_glass: str = ""
    delegation: str = ""
    standing: CardStanding | None = None
    around: Surroundings = field(default_factory=Surroundings)
    marks: tuple[Mark, ...] = ()
    now: datetime = field(default_factory=timezone.now)

    @property
    def is_open(self) -> bool:
        """True if the call waits for approval; see `question` and `is_unknown` for cards of other
        kinds."""
        is_approval = self.approval.kind == ApprovalKind.APPROVAL
        return is_approval and self.approval.status == ApprovalStatus.PENDING

    @property
    def is_unknown(self) -> bool:
        """True if a person must resolve an unknown outcome, or acknowledge a late effect."""
        return (
            self.approval.kind == ApprovalKind.UNKNOWN
            and self.approval.status == ApprovalStatus.PENDING
        )

    @property
    def is_late_effect(self) -> bool:
        """True if a call took effect although it was marked as not done, and nobody has
        acknowledged this yet."""
        return self.is_unknown and self.call.late_effect is not None

    @cached_property
    def question(self) -> AskedQuestion | None:
        """The employee's question; None for a card of another kind."""
        return read_question(self.approval)

    @property
    def may_be_granted(self) -> bool:
        """True if a standing grant may be able to approve cards like this one."""
        has_one_maker = self.standing is None or not self.standing.needs_several_people
        is_tool = self.tool is not None and self.asked is None
        is_approvable = self.is_open and not self.is_destructive and not self.is_done
        return has_one_maker and is_approvable and is_tool

    @property
    def earlier_denial(self) -> Approval | None:
        """The newest earlier decision about the same params, if it was a denial."""
        same = (each for each in self.earlier_decisions if each.params == self.approval.params)
        newest = next(same, None)
        return newest if newest is not None and newest.status == ApprovalStatus.DENIED else None

    @property
    def suggests_grant(self) -> bool:
        """True if people approved all of the last cards of this shape, without a standing grant or
        break-glass."""
        earlier = self.earlier_decisions
        return len(earlier) >= MAX_EARLIER and all(
            each.status in APPROVED_STATES
            and each.standing_grant_id is None
            and not each.broke_glass
            for each in earlier
        )

    @property
    def warning(self) -> str:
        """The warning that a backup was restored after the call, to read before deciding; empty for
        most cards."""
        return find_restore_warning(self.approval)

    @property
    def obstacle(self) -> str | None:
        """The reason why the call cannot start as shown, even if approved; usually None."""
        return find_tool_staleness(self.call, self.tool)

    @property
    def source_name(self) -> str:
        """The full name of a tool from outside; empty for built-in tools."""
        return find_source_name(self.tool)

    @property
    def outcome(self) -> str:
        """The decision of a person, or how the card was closed without approval."""
        return name_outcome(self.approval)

    @property
    def outcome_icon(self) -> str:
        return OUTCOME_ICONS.get(self.outcome, "ban")

    @property
    def was_withdrawn(self) -> bool:
        """True if the card was approved and then closed before its call started."""
        return was_withdrawn(self.approval)

    @property
    def barred_usernames(self) -> str:
        """The usernames of the members whose approval would not count now, joined by spaces, which
        usernames do not contain."""
        return " ".join(self.standing.list_barred()) if self.standing else ""

    @property
    def requesters_text(self) -> str:
        """The actions of the requesters, if a rule excludes them: `Ada started this run`."""
        return describe_requesters(self.standing.requesters) if self.standing else ""

    @property
    def report(self) -> CallReport | None:
        """The outcome after the decision; None if there is nothing to add to the decision."""
        return describe_call(
            self.approval, self.call, self.report_text, is_undoable=self.undo_left_s > 0
        )

    @property
    def is_unsettled(self) -> bool:
        """True if the card is decided and the outcome is still open."""
        return self.undo_left_s > 0 or (self.report is not None and self.report.state == "going")

    @property
    def is_destructive(self) -> bool:
        return self.approval.level == Level.DESTRUCTIVE.value

    @property
    def is_done(self) -> bool:
        """True if the card's effect already exists: it can be dismissed, and not approved."""
        return self.around.done is not None

    @property
    def must_be_read(self) -> bool:
        """True if Approve stays disabled until the person has opened every folded part."""
        return self.approval.level in (Level.WRITE.value, Level.DESTRUCTIVE.value)

    @property
    def icon(self) -> str:
        """The icon of the card's level."""
        return ICONS.get(self.approval.level, "circle-question-mark")

    @property
    def level_reason(self) -> str:
        return "" if self.asked else LEVEL_REASONS.get(self.approval.level, "")

    @property
    def title(self) -> str:
        return name_tool(self.tool, self.call.tool)

    @property
    def server_title(self) -> str:
        return get_server_title(self.tool)

    @cached_property
    def effect(self) -> Effect:
        """The sealed preview of the call's changes."""
        preview = get_preview(self.approval)
        is_sent = preview.get("effect") == SEND
        nouns = find_nouns(self.call.tool, is_sent=is_sent)
        return Effect(
            preview,
            nouns,
            self.all_targets,
            lists_requests=is_sent,
            folding=read_card(self.approval).folding,
            params=self.approval.params,
        )

    @property
    def action_label(self) -> str:
        """The verb and object of the Approve button in plain text: `update “Acme Corp”`, `delete
        212 records`."""
        label = self.effect.target_label
        target = OutsideText(label) if label else self.effect.target
        return f"{self.action_verb} {target}" if self.has_action_target else self.title

    @property
    def has_action_target(self) -> bool:
        """True if the Approve button names the target; otherwise it names the tool."""
        return bool(self.effect.target) and not self.effect.has_no_preview

    @property
    def action_verb(self) -> str:
        verb = self.effect.verb
        is_ours = verb == SEND or not isinstance(self.title, OutsideText)
        return verb if is_ours else OutsideText(verb)

    @cached_property
    def chip_ids(self) -> dict[str, str]:
        """The id of the first target, keyed by the target's name as the sentence shows it."""
        return {
            format_name(target.label).strip("*"): target.id
            for target in self.effect.first_targets[:1]
            if target.id
        }

    @cached_property
    def sentence_ends(self) -> tuple[str, str] | None:
        """The start and the end of a sentence that is too long to be shown whole; else None."""
        sentence = self.approval.sentence
        return cut_sentence(sentence) if len(sentence) > MAX_SENTENCE else None

    @cached_property
    def reasons(self) -> AskingReasons:
        """The reasons why the card needs a decision."""
        asking = CallToExplain(
            self.call, self.run.employee_id, self.tool, may_be_granted=self.may_be_granted
        )
        return describe_reasons(self.approval.why, asking)

    @cached_property
    def origins(self) -> ValueOrigins:
        """The places where the values of the request were seen before."""
        return describe_origins(self.call)

    @cached_property
    def confirmation_phrase(self) -> str | None:
        """The phrase to type before approving; None for most cards below the destructive level."""
        return make_confirmation_phrase(self.approval) if self.is_open else None

    @property
    def share(self) -> str:
        """The number of affected objects and, if the total is known, their share of it: `427 of 515
        records, 83%`."""
        total = self.around.total_objects
        if not total or total < self.effect.total:
            return self.effect.count_label
        percent = round(100 * self.effect.total / total)
        share = f"{percent}%" if percent or not self.effect.total else "less than 1%"
        return f"{self.effect.total:,} of {total:,} {self.effect.nouns[1]}, {share}"

    @property
    def grace_s(self) -> int:
        return GRACE_S.get(self.approval.level, 0)

    @property
    def undo_left_s(self) -> int:
        """The seconds left to undo the approval."""
        if self.approval.status != ApprovalStatus.APPROVED or self.approval.start_after is None:
            return 0
        return max(0, round((self.approval.start_after - self.now).total_seconds()))

    @property
    def is_editable(self) -> bool:
        """True if the card is open and its tool is installed; the params of an ask cannot
        change."""
        return self.tool is not None and self.is_open and self.asked is None

    @cached_property
    def edit_fields(self) -> list[FormField]:
        """The fields of the edit form; empty if the tool is no longer installed."""
        if self.tool is None:
            return []
        fields = build_fields(self.tool.schema, self.approval.params, self.form_input)
        return mark_first_field(fields, {target.id for target in self.effect.first_targets})

    @property
    def problem(self) -> str:
        """The problem with the whole edit form; each field shows its own problem."""
        return self.form_input.problems.get("", "")

    @property
    def has_invalid_edit(self) -> bool:
        """True if a person submitted an invalid edit; the form then stays open."""
        return bool(self.form_input.problems)

    @property
    def deny_reasons(self) -> tuple[str, ...]:
        return DENY_REASONS

    @cached_property
    def changes(self) -> ValueBlock | None:
        """The differences from the card that this card replaces; None if there are none."""
        if self.previous is None or self.is_done:
            return None
        found = [
            NamedValue(each.name, each.before, each.after)
            for each in find_differences(self.previous, self.approval)
        ]
        return (
            build_block(found, split_values(found, Room(CHANGED_ROWS), Signs())) if found else None
        )


def load_cards(
    approvals: Iterable[Approval], *, all_targets: bool = False, listed: CardFacts | None = None
) -> list[Card]:
    """Build the card of each approval, in the same order. All approvals belong to one organization,
    and have their call and run loaded.

    The number of queries does not depend on the number of cards, except for the further facts
    around waiting cards.

    Args:
        all_targets: see `Card`.
        listed: the facts already loaded for a list that may contain these cards.
    """
    approvals = list(approvals)
    waiting = [
        approval
        for approval in approvals
        if approval.status == ApprovalStatus.PENDING and approval.kind != ApprovalKind.QUESTION
    ]
    delegations = describe_delegations([approval.run for approval in approvals])
    earlier = load_earlier_decisions(waiting)
    asking = [card for card in waiting if card.kind == ApprovalKind.APPROVAL]
    standings = find_standings(asking[0].run.organization, asking) if asking else {}
    texts = _load_pass_texts(
        {(approval.run_id, approval.tool_call.pass_number) for approval in approvals}
    )
    words = {
        card.pk: texts.get((card.run_id, card.tool_call.pass_number), "") for card in approvals
    }
    around = load_surroundings(asking, words, listed)
    marks = load_marks(approval for approval in approvals if approval.pk not in around)
    by_call = _group_by_call(approvals)
    return [
        Card(
            approval=approval,
            call=approval.tool_call,
            run=approval.run,
            tool=find_call_tool(approval.tool_call),
            employee_words=quote_employee(words[approval.pk]),
            earlier_decisions=earlier.get(approval.pk, []),
            previous=_find_previous(approval, by_call[approval.tool_call_id]),
            successor=_find_successor(approval, by_call[approval.tool_call_id]),
            all_targets=all_targets,
            delegation=delegations.get(approval.run_id, ""),
            standing=standings.get(approval.pk),
            around=around.get(approval.pk, Surroundings()),
            marks=marks.get(approval.pk, ()),
        )
        for approval in approvals
    ]


def _group_by_call(approvals: list[Approval]) -> dict[int, list[Approval]]:
    """Load the other cards of the same calls, and group all cards by call, oldest first."""
    by_call: dict[int, list[Approval]] = {}
    others = Approval.objects.filter(
        tool_call_id__in={approval.tool_call_id for approval in approvals}
    )
    for approval in (
        *approvals,
        *others.exclude(pk__in=[approval.pk for approval in approvals]).order_by(),
    ):
        by_call.setdefault(approval.tool_call_id, []).append(approval)
    return {
        call_id: sorted(cards, key=lambda card: card.sequence) for call_id, cards in by_call.items()
    }


def find_call_tool(call: ToolCall) -> Tool | None:
    """Return the tool in the version that was judged, else in its newest version; None if the tool
    is not installed."""
    return load_toolbox(call.organization_id).get_called_tool(call.tool, call.version)


def _find_previous(approval: Approval, cards: list[Approval]) -> Approval | None:
    earlier = [other for other in cards if other.sequence < approval.sequence]
    return earlier[-1] if earlier else None


def _find_successor(approval: Approval, cards: list[Approval]) -> Approval | None:
    later = [other for other in cards if other.sequence > approval.sequence]
    return later[-1] if later else None


def _load_pass_texts(passes: set[tuple[int, int]]) -> dict[tuple[int, int], str]:
    if not passes:
        return {}
    conditions = Q()
    for run_id, number in passes:
        conditions |= Q(run_id=run_id, number=number)
    found = Pass.objects.filter(conditions).values_list("run_id", "number", "text")
    return {(run_id, number): text for run_id, number, text in found}
