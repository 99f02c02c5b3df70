"""What a tool is told about the run that it works for."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from .level import Level
from .preview import Preview
from .reach import Reach
from .result import ToolResult


@dataclass(frozen=True)
class Person:
    """The user on whose behalf the run works; id is empty when nobody in particular started it."""

    id: str = ""
    name: str = ""
    preferences: Mapping[str, Any] = field(default_factory=dict)


def _no_progress(_fraction: float, _text: str) -> None:
    return None


def _no_results(_handle: str) -> ToolResult | None:
    return None


def _no_calls(name: str, _params: dict[str, Any]) -> ToolResult:
    raise RuntimeError(f"call_tool({name!r}) is not available outside a run")


def _no_model(_prompt: str) -> str:
    raise RuntimeError("ask_model is for the platform's own tools")


@dataclass(frozen=True)
class ToolContext:
    """Comes from the run, never from params.

    Attributes:
        organization_id: the tenant; every query of a tool is scoped by it.
        organization_name, user, employee_id, employee_name, run_id, mode: who asks, for whom.
        correlation_id: joins the log lines of one run.
        call_id, idempotency_key: of this call; the same call always has the same key.
        level: of this call, as far as an admin raised it; None: the tool's own.
        session: data kept per run.
        credentials: by service, e.g. credentials["github"]["token"]; what a call says is cleaned of their values.
        reach: which hosts it may reach; given to `tools.network`, the only way out.
        preview: of an approved call, the sealed effect that the person approved.
        progress: `progress(fraction, text)`, fraction from 0 to 1.
        earlier_result: the whole result of an earlier call of the run, by the handle that the model was told.
        call_tool: runs another tool whose verdict is auto, as a child call.
        ask_model: for the platform's own tools, what the employee's model answers to a text.
    """

    organization_id: int
    organization_name: str = ""
    user: Person = field(default_factory=Person)
    employee_id: str = ""
    employee_name: str = ""
    run_id: str = ""
    correlation_id: str = ""
    call_id: str = ""
    idempotency_key: str = ""
    mode: str = "general"
    level: Level | None = None
    session: dict[str, Any] = field(default_factory=dict)
    credentials: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    reach: Reach = field(default_factory=Reach)
    preview: Preview | None = None
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("gadget.tools"))
    progress: Callable[[float, str], None] = _no_progress
    earlier_result: Callable[[str], ToolResult | None] = _no_results
    call_tool: Callable[[str, dict[str, Any]], ToolResult] = _no_calls
    ask_model: Callable[[str], str] = _no_model

    def with_progress(self, progress: Callable[[float, str], None]) -> Self:
        """The same, but reporting elsewhere."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, progress=progress)
        return twin
