"""The context of a call: the run that the tool works for."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from tools.contract.level import Level
from tools.contract.network_access import NetworkAccess
from tools.contract.preview import Preview
from tools.contract.result import ToolResult
from tools.contract.services import Services


@dataclass(frozen=True)
class Person:
    """The user on whose behalf the run works; `id` is empty if the run was not started by a
    particular user."""

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
    """The facts and functions that a tool receives from the run, never from its params.

    Attributes:
        organization_id: the tenant; scopes every query of a tool.
        organization_name, user, employee_id, employee_name, run_id, mode: the origin of the call.
        environment: "production", or "development" while DEBUG is on.
        correlation_id: links the log lines of one run.
        call_id, idempotency_key: identify this call; every attempt at it has the same key.
        level: the call's level if an admin raised it; None means the tool's own.
        session: data shared by the calls of the run.
        credentials: by service, e.g. credentials["github"]["token"]; their values are removed from
            all output. The credentials of known services are also fields of `services`.
        reach: the hosts that the call may contact; pass it to `tools.network`, through which all
            network access must go.
        preview: the sealed effect that a person approved; None for a call without approval.
        progress: `progress(fraction, text)` reports progress, with a fraction from 0 to 1.
        earlier_result: returns the full result of an earlier call of the run, by its handle.
        call_tool: runs another tool whose verdict is auto, as a child call.
        ask_model: sends a prompt to the employee's model and returns its response; for the
            platform's own tools.
    """

    organization_id: int
    organization_name: str = ""
    user: Person = field(default_factory=Person)
    employee_id: str = ""
    employee_name: str = ""
    run_id: str = ""
    environment: Literal["development", "production"] = "production"
    correlation_id: str = ""
    call_id: str = ""
    idempotency_key: str = ""
    mode: str = "general"
    level: Level | None = None
    session: dict[str, Any] = field(default_factory=dict)
    credentials: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    reach: NetworkAccess = field(default_factory=NetworkAccess)
    preview: Preview | None = None
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("gadget.tools"))
    progress: Callable[[float, str], None] = _no_progress
    earlier_result: Callable[[str], ToolResult | None] = _no_results
    call_tool: Callable[[str, dict[str, Any]], ToolResult] = _no_calls
    ask_model: Callable[[str], str] = _no_model

    @property
    def services(self) -> Services:
        """Credentials of known services, e.g. `services.github.token`; empty if not set."""
        return Services(self.credentials)

    def with_progress(self, progress: Callable[[float, str], None]) -> Self:
        """Return a copy that reports progress to this function."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, progress=progress)
        return copy
