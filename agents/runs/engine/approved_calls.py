"""Judge approved calls that are due (step 3 of a run): each must still match its card."""

from __future__ import annotations

from datetime import datetime

from typing_extensions import override

from agents.runs.engine.card_sentences import CallEffect
from agents.runs.engine.cards import compute_digest, hash_params, seal
from agents.runs.engine.context import RunContext
from agents.runs.engine.covered_facts import is_covered
from agents.runs.engine.judgment import Judgment
from agents.runs.engine.preapprover import AskingCard, PreapprovalObjection, get_preapprover
from agents.runs.engine.recovery import has_happened_since
from agents.runs.engine.transaction import Transaction
from agents.runs.models import Approval, ToolCall
from tools.contract import Tool, ToolError
from tools.toolbox.conditions import list_exceeded
from tools.toolbox.objections import Objection


class ApprovedCall(Judgment):
    """An approved call that is due: if it no longer matches its card, a new card asks for approval
    again.

    Attributes:
        tool, verdict: the results of the last judgment.
        warnings: the warnings on a card that a standing grant approved; if there are any, a person
            must decide.
        effect: the last computed effect, or the reason why the gate forbids the call.
    """

    follows_rules_alone = False

    def __init__(self, context: RunContext, card: Approval) -> None:
        super().__init__(context)
        self.card, self.call = card, card.tool_call
        self.judge(None)
        self.warnings = self._find_warnings()
        self.effect: CallEffect | ToolError | None = None

    @property
    def matches_card(self) -> bool:
        """True if the tool, its definition, the level and the params are still as sealed on the
        card."""
        same = self.tool is not None and self.tool.definition_hash == self.call.definition_hash
        return (
            same
            and self.verdict.level == self.call.level
            and self.verdict.params == self.call.params
        )

    @property
    def keeps_limits(self) -> bool:
        """True if the card showed every counting limit that the call exceeds now."""
        conditions, params = (
            self.context.grants.conditions.get(self.call.tool, ()),
            self.verdict.params,
        )
        seen = list_exceeded(conditions, params, (self.call.judgment or {}).get("facts", {}))
        return all(each in seen for each in list_exceeded(conditions, params, self.verdict.facts))

    def seal_changes(self, call: ToolCall) -> None:
        """Seal the call as it would run now, if that differs from its card, so that the params and
        the level of a new card match its sentence and effect; the caller saves the call."""
        if self.tool is None or self.verdict.error is not None:
            return
        if not (self.matches_card and self.keeps_limits):
            self.context.record_verdict(call, self.verdict)
            seal(call, self.tool, self.verdict.params)

    @override
    def list_tools(self) -> list[str]:
        return [self.call.tool]

    @override
    def judge(self, now: datetime | None) -> None:
        self.tool, self.verdict = self.context.judge_start(self.call.tool, self.call, now)

    @override
    def compare(self, tx: Transaction) -> Objection | None:
        """Compare the call and its effect with the card; an objection with an error means that the
        call cannot run."""
        error = self.verdict.error or self.effect
        if isinstance(error, ToolError):
            return Objection(error.message, error)
        if not self.matches_card:
            return Objection("The tool or its level changed since this was approved.")
        if not self.keeps_limits:
            return Objection("A limit was reached after this was approved.")
        if hash_params(self.call.params) != hash_params(self.card.params):
            return Objection("The parameters were changed in the database after this was approved.")
        if has_happened_since(self.card):
            return Objection(
                "The same call was marked as not done, but it happened. This call would repeat it."
            )
        return self._compare_effect()

    def _compare_effect(self) -> Objection | None:
        assert isinstance(self.effect, CallEffect)
        preview = self.effect.preview
        is_as_shown = compute_digest(self.call, preview.as_json()) == self.card.digest
        if is_as_shown or is_covered(self.card, preview):
            return None
        changed = (
            "This was done meanwhile"
            if preview.is_done
            else "The target changed since this was approved"
        )
        return Objection(f"{changed}.")

    def find_grant_objection(self) -> PreapprovalObjection | None:
        """Return the reason why the standing grant that approved the call does not allow its start;
        None if it does, or if a person approved the call."""
        if self.card.standing_grant_id is None or self.tool is None:
            return None
        if self.warnings:
            return PreapprovalObjection(f"the card carries a warning: {', '.join(self.warnings)}")
        return get_preapprover().find_objection(self._ask(self.tool))

    def _find_warnings(self) -> tuple[str, ...]:
        if (
            self.card.standing_grant_id is None
            or self.tool is None
            or self.verdict.error is not None
        ):
            return ()
        return get_preapprover().find_warnings(self._ask(self.tool))

    def _ask(self, tool: Tool) -> AskingCard:
        return AskingCard(self.card, self.context.run, tool, self.verdict.causes)
