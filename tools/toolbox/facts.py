"""The facts on which a call's verdict depends, looked up only if the verdict needs them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from tools.contract import (
    Level,
    Tool,
    ToolError,
    find_embedded_requests,
    find_named_hosts,
    parse_arguments,
)
from tools.toolbox.history import EarlierCalls, LiveHistory, ToolHistory
from tools.toolbox.isolation import run_isolated
from tools.toolbox.provenance import OwnData, Provenance

HISTORY = "history"
"""The name under which a verdict keeps the facts about earlier calls."""


class ToolTraits(Protocol):
    """The properties of a tool that a verdict depends on; every `Tool` has them."""

    @property
    def name(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def level(self) -> Level: ...
    @property
    def modes(self) -> frozenset[str] | None: ...
    @property
    def capabilities(self) -> frozenset[str]: ...
    @property
    def features(self) -> frozenset[str]: ...
    @property
    def open_world(self) -> bool: ...
    @property
    def is_from_outside(self) -> bool: ...
    @property
    def is_system(self) -> bool: ...
    @property
    def carries_requests(self) -> bool: ...


class ValueSearch(Protocol):
    """A search for a call's values in everything that a run has seen; used only if the verdict
    needs it."""

    def trace(self, tool: Tool, params: Mapping[str, Any]) -> Provenance:
        """Find the origin of each value in the params."""

    def find_own_data(self, tool: Tool, params: Mapping[str, Any]) -> OwnData:
        """Find the values that come from the organization's own data."""


class CallFacts(Protocol):
    """The facts about one call: looked up live, or read from the call's record."""

    @property
    def params(self) -> dict[str, Any]:
        """The canonical params.

        Raises:
            ToolError: the arguments are invalid.
        """

    @property
    def requests(self) -> tuple[str, ...]:
        """Requests inside the params of an outside tool."""

    @property
    def hosts(self) -> frozenset[str] | None:
        """The hosts that the call contacts; None if they are unknown.

        Raises:
            ToolError: the tool cannot read the params.
        """

    @property
    def provenance(self) -> Provenance | None:
        """The origins of the values; None outside a run, because there are no texts to search
        there."""

    @property
    def own_data(self) -> OwnData:
        """The values from the organization's own data."""

    @property
    def is_approved_before(self) -> bool:
        """True if a person has approved, in this run, a call of the tool that sent unseen text to
        these hosts."""

    @property
    def history(self) -> ToolHistory | None:
        """The employee's earlier calls; None if they are not known."""


@dataclass
class LiveFacts:
    """The facts as they are now, each looked up once.

    Attributes:
        arguments: the model's JSON text, or params that are already parsed.
        values: searches for the origins of values; None outside a run, because there are no texts
            to search there.
        earlier: the employee's earlier calls; None if they are not known.
        used: the facts that were looked up, as JSON by name.
    """

    tool: Tool
    arguments: str | dict[str, Any]
    values: ValueSearch | None = None
    earlier: EarlierCalls | None = None
    used: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def params(self) -> dict[str, Any]:
        try:
            raw = (
                parse_arguments(self.arguments)
                if isinstance(self.arguments, str)
                else self.arguments
            )
            return run_isolated(self.tool, "check_params", lambda: self.tool.check_params(raw))
        except ToolError as error:
            self._keep_error(error)
            raise

    @cached_property
    def requests(self) -> tuple[str, ...]:
        found = find_embedded_requests(self.params) if self.tool.is_from_outside else ()
        if found:
            self.used["requests"] = list(found)
        return found

    @cached_property
    def hosts(self) -> frozenset[str] | None:
        try:
            found = find_hosts(self.tool, self.params)
        except ToolError as error:
            self._keep_error(error)
            raise
        if found is None or found:
            self.used["hosts"] = None if found is None else sorted(found)
        return found

    @cached_property
    def provenance(self) -> Provenance | None:
        found = self.values.trace(self.tool, self.params) if self.values is not None else None
        self.used["is_traced"] = found is not None
        return found

    @cached_property
    def own_data(self) -> OwnData:
        found = (
            self.values.find_own_data(self.tool, self.params)
            if self.values is not None
            else OwnData()
        )
        unseen = [True] if found.has_unseen_text else []
        self.used["own_data"] = [list(found.values), found.is_partial, *unseen]
        return found

    @cached_property
    def is_approved_before(self) -> bool:
        found = self.earlier is not None and self.earlier.has_approved_read(
            self.tool.name, self.hosts or frozenset()
        )
        self.used["is_approved_before"] = found
        return found

    @cached_property
    def history(self) -> ToolHistory | None:
        if self.earlier is None:
            self.used[HISTORY] = None
            return None
        kept: dict[str, Any] = {}
        self.used[HISTORY] = kept
        return LiveHistory(self.tool.name, self.earlier, kept)

    def keep_params(self) -> None:
        """Keep valid params among the facts, because a forbidden call does not store them anywhere
        else."""
        if "params" in self.__dict__:
            self.used["params"] = self.params

    def _keep_error(self, error: ToolError) -> None:
        self.used["error"] = [error.code.value, error.message]


def find_hosts(tool: Tool, params: dict[str, Any]) -> frozenset[str] | None:
    """Find the hosts that a call contacts, even if an outside tool declares none; None if they are
    unknown.

    Raises:
        ToolError: the tool cannot read the params.
    """
    if tool.open_world:
        return run_isolated(tool, "hosts", lambda: tool.hosts(tool.load_params(params)))
    if not tool.is_from_outside:
        return frozenset()
    return run_isolated(
        tool, "address_params", lambda: find_named_hosts(params, tool.address_params)
    )
