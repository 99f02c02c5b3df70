"""Actions that an agent takes itself, and asks about before: Gadget has them decided and records
them, no more."""

from typing import Any, NoReturn

from pydantic import BaseModel, ConfigDict

from tools.contract import ErrorCode, Level, Preview, Tool, ToolContext, ToolError

PREFIX = "ask/"
"""The beginning of their names among calls; no tool can have such a name, so nothing about a tool
applies to them."""
NOT_RUN_HERE = "Gadget does not run this; the agent will."


class _AnyParams(BaseModel):
    """Whatever the agent sends: only the agent knows what they mean."""

    model_config = ConfigDict(extra="allow")


class AskedAction(Tool):
    """An action of this name. Its level is that of its call, because each organization sets its
    own."""

    description = "An action that an agent takes itself once a person has approved it."
    level = Level.DESTRUCTIVE
    Params = _AnyParams
    source = "an agent"

    def __init__(self, action: str) -> None:
        self.name = f"{PREFIX}{action}"
        self.display_name = action

    def execute(self, params: Any, context: ToolContext) -> NoReturn:
        """Refuse: nothing here can do it."""
        raise ToolError(ErrorCode.OPERATION_NOT_ALLOWED, NOT_RUN_HERE, attempted=False)

    def preview(self, params: Any, context: ToolContext) -> Preview:
        """Say that the effect is not known here."""
        return Preview.impossible(NOT_RUN_HERE)

    def sentence(self, params: Any, preview: Preview) -> str:
        """Name the action; the card of an ask names the agent and its params, too."""
        return f"An agent asks to run {self.display_name}"


def find_asked_action(name: str) -> AskedAction | None:
    """Return the action that a call of this name asks about, or `name@version`; None for the name
    of a tool."""
    return (
        AskedAction(name.removeprefix(PREFIX).partition("@")[0])
        if name.startswith(PREFIX)
        else None
    )
