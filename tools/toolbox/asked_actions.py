"""Actions that an agent asks about and carries out itself; Gadget only obtains and records the
decision."""

from typing import Any, NoReturn

from pydantic import BaseModel, ConfigDict

from tools.contract import ErrorCode, Level, Preview, Tool, ToolContext, ToolError
from tools.contract.sentences import format_name

PREFIX = "ask/"
"""The prefix of asked actions' names. Tools cannot have such names, so rules about tools do not
apply to these actions."""
NOT_RUN_HERE = "Gadget does not run this; the agent will."


class _AnyParams(BaseModel):
    """Params of any shape, because only the agent knows what they mean."""

    model_config = ConfigDict(extra="allow")


class AskedAction(Tool):
    """An action that agents ask about, identified by its name. Every organization sets its level,
    so each call has its own level."""

    description = "An action that an agent takes itself once a person has approved it."
    level = Level.DESTRUCTIVE
    Params = _AnyParams
    source = "an agent"

    def __init__(self, action: str) -> None:
        self.name = f"{PREFIX}{action}"
        self.display_name = action

    def execute(self, params: Any, context: ToolContext) -> NoReturn:
        """Raise OPERATION_NOT_ALLOWED, because only the agent can carry out the action."""
        raise ToolError(ErrorCode.OPERATION_NOT_ALLOWED, NOT_RUN_HERE, attempted=False)

    def preview(self, params: Any, context: ToolContext) -> Preview:
        """Return a preview with an unknown effect."""
        return Preview.impossible(NOT_RUN_HERE)

    def sentence(self, params: Any, preview: Preview) -> str:
        """Name the action; the card of an ask also names the agent and shows the params."""
        return f"An agent asks to run {format_name(self.display_name)}"


def find_asked_action(name: str) -> AskedAction | None:
    """Return the action that a call of this name or `name@version` asks about; None for a tool."""
    return (
        AskedAction(name.removeprefix(PREFIX).partition("@")[0])
        if name.startswith(PREFIX)
        else None
    )
