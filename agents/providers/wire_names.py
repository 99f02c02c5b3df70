"""Map tool names to wire names and back: model servers refuse names with dots and long names."""

import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agents.providers.base import ProviderError

MAX_TOOLS = 128
MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_CALLED = 200
LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ILLEGAL_RUN = re.compile(r"[^a-zA-Z0-9_-]+")


class WireNames:
    """A two-way table of the names of one set of tools; internal names are looked up, never derived
    from wire names."""

    def __init__(self, names: Sequence[str]) -> None:
        if len(names) > MAX_TOOLS:
            raise ProviderError(
                "refused",
                f"{len(names)} tools are offered, but a model accepts at most {MAX_TOOLS}. Allow fewer tools",
                transient=False,
            )
        self._to_wire: dict[str, str] = {}
        self._to_internal: dict[str, str] = {}
        for name in dict.fromkeys(names):
            wire = self._find_free_name(name)
            self._to_wire[name] = wire
            self._to_internal[wire] = name

    def _find_free_name(self, name: str) -> str:
        plain = get_plain_wire_name(name)
        wire, tries = plain, 0
        while not wire or len(wire) > MAX_NAME or wire in self._to_internal:
            wire, tries = f"{plain[:55]}_{_digest(name, tries)}", tries + 1
        return wire

    def to_wire(self, name: str) -> str:
        """Return the wire name of an offered tool, or a legal form of any other name."""
        known = self._to_wire.get(name)
        return known if known is not None else self._find_free_name(name)

    def find_offered(self, name: str) -> str | None:
        """Return the internal name of the offered tool that has exactly this wire or internal
        name."""
        return self._to_internal.get(name, name if name in self._to_wire else None)

    def to_internal(self, called: str) -> str:
        """Return the internal name of the offered tool that a model means by this name; the name
        unchanged if there is none.

        Some models add text from their prompt to a name, as in `functions.data__find:0` or
        `data__find<|channel|>json`. Such a name is accepted if exactly one offered tool fits it.
        """
        exact = self.find_offered(called)
        if exact is not None or len(called) > MAX_CALLED:
            return called if exact is None else exact
        fitting = {tool for wire, tool in self._to_internal.items() if _is_within(wire, called)}
        fitting |= {tool for tool in self._to_wire if _is_within(tool, called, is_dotted=True)}
        return fitting.pop() if len(fitting) == 1 else called

    def is_offered(self, wire: str) -> bool:
        """Return True if the name is the wire or internal name of an offered tool."""
        return self.find_offered(wire) is not None

    def rename_definitions(self, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the definitions with wire names and descriptions of at most 1,024 characters."""
        return [{**tool, "function": self._rename_function(tool["function"])} for tool in tools]

    def _rename_function(self, function: Mapping[str, Any]) -> dict[str, Any]:
        outgoing = {**function, "name": self._to_wire[function["name"]]}
        description = outgoing.get("description")
        if description and len(description) > MAX_DESCRIPTION:
            outgoing["description"] = description[: MAX_DESCRIPTION - 1] + "…"
        return outgoing

    def rename_messages(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the history with legal names for calls whose recorded name no server would
        accept."""
        return [
            self._with_legal_names(message) if message.get("tool_calls") else message
            for message in messages
        ]

    def _with_legal_names(self, message: dict[str, Any]) -> dict[str, Any]:
        calls = message["tool_calls"]
        if all(LEGAL_NAME.fullmatch(call["function"]["name"]) for call in calls):
            return message
        legal = [
            {**call, "function": {**call["function"], "name": self._make_legal_name(call)}}
            for call in calls
        ]
        return {**message, "tool_calls": legal}

    def _make_legal_name(self, call: Mapping[str, Any]) -> str:
        name: str = call["function"]["name"]
        return name if LEGAL_NAME.fullmatch(name) else self.to_wire(name)


def get_plain_wire_name(name: str) -> str:
    """Return the usual wire name; `WireNames` replaces it if it is too long or another tool has
    it."""
    if LEGAL_NAME.fullmatch(name) and "__" not in name:
        return name
    return _ILLEGAL_RUN.sub("_", name.replace(".", "__"))


def _is_within(offered: str, called: str, *, is_dotted: bool = False) -> bool:
    """Return True if the called name contains the offered name as a whole.

    Next to the offered name, letters, digits, `_` and `-` would belong to the name of another tool,
    and so would dots next to a dotted name.
    """
    before = r"(?:^functions\.|(?<![\w.-]))" if is_dotted else r"(?<![\w-])"
    return re.search(rf"{before}{re.escape(offered)}(?![\w.-])", called) is not None


def _digest(name: str, tries: int) -> str:
    """Return eight hexadecimal digits for the name. They differ with each attempt, because names
    can be crafted to collide."""
    return hashlib.sha256(f"{name}{' ' * tries}".encode("utf-8", "surrogatepass")).hexdigest()[:8]


@functools.lru_cache(maxsize=256)
def get_wire_names(names: tuple[str, ...]) -> WireNames:
    """Return the table for these names, cached because every pass of a run offers the same
    tools."""
    return WireNames(names)
