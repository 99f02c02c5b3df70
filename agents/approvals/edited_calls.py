"""Judge, trace and preview a call again after a person has edited its params; the result becomes a
new card."""

from datetime import datetime
from typing import Any

from typing_extensions import override

from agents.platform.refusals import Invalid
from agents.runs.call_history import Occasion
from agents.runs.engine.cards import compute_effect
from agents.runs.engine.context import RunContext, has_same_verdict
from agents.runs.engine.judgment import Judgment
from agents.runs.engine.transaction import Transaction
from agents.runs.models import ToolCall
from tools.contract import ErrorCode, ToolError
from tools.toolbox.asked_actions import find_asked_action
from tools.toolbox.objections import Objection
from tools.toolbox.permissions import Permission


class EditedCall(Judgment):
    """A card's call with edited params. The edit is refused if the verdict changes before the card
    is replaced.

    Attributes:
        tool, effect: the tool and the effect of the edited call; the new card seals and shows them.
        provenance: the earlier places in the run where the values of the params appeared.
        verdict: the verdict of the last judgment.
    """

    def __init__(self, context: RunContext, call: ToolCall, params: dict[str, Any]) -> None:
        """Judge the params, trace their values and compute their effect, outside transactions.

        Raises:
            Invalid: the params are invalid, are not allowed, do not need approval, or belong to an
                ask.
        """
        super().__init__(context)
        if find_asked_action(call.tool):
            raise Invalid(
                "params",
                "the agent acts with the parameters that it asked about; deny the card and say why",
            )
        tool, verdict = context.judge(call.tool, params)
        if tool is None or verdict.error is not None:
            raise _refuse_params(
                verdict.error
                or ToolError(ErrorCode.TOOL_NOT_FOUND, "The tool is no longer installed.")
            )
        if verdict.permission != Permission.ASK:
            raise Invalid("params", "a call with these params needs no approval")
        self.tool, self.verdict, self._params, self._first = tool, verdict, params, verdict
        self.provenance = verdict.provenance or context.values.trace(tool, verdict.params)
        try:
            self.effect = compute_effect(tool, verdict.params, context.build_tool_context(call))
        except ToolError as error:
            raise _refuse_params(error) from error

    @override
    def list_tools(self) -> tuple[str, ...]:
        # The call is not counted yet: it counts when it starts, and its new card waits for a
        # person.
        return ()

    @override
    def judge(self, now: datetime | None) -> None:
        _, self.verdict = self.context.judge(self.tool.name, self._params, Occasion(now))

    @override
    def compare(self, tx: Transaction) -> Objection | None:
        is_same = has_same_verdict(self.verdict, self._first)
        return None if is_same else Objection("permissions have changed; edit the card again")


def _refuse_params(error: ToolError) -> Invalid:
    return Invalid(f"params.{error.parameter}" if error.parameter else "params", error.message)
