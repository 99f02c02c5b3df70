"""Tool names on the wire: a reversible table for each request, because model servers refuse dots and long names."""

import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agents.providers.base import ProviderError

MAX_TOOLS = 128
MAX_NAME = 64
MAX_DESCRIPTION = 1024
LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ILLEGAL_RUN = re.compile(r"[^a-zA-Z0-9_-]+")


class WireNames:
    """Both directions for one set of internal names; a name from the wire is looked up, never guessed from its text."""

    def __init__(self, names: Sequence[str]) -> None:
        if len(names) > MAX_TOOLS:
            raise ProviderError(
                "refused",
                f"{len(names)} tools are offered and a model accepts at most {MAX_TOOLS}: allow this employee fewer",
                transient=False,
            )
        self._to_wire: dict[str, str] = {}
        self._to_internal: dict[str, str] = {}
        for name in dict.fromkeys(names):
            wire = self._free_name(name)
            self._to_wire[name] = wire
            self._to_internal[wire] = name

    def _free_name(self, name: str) -> str:
        plain = plain_form(name)
        wire, tries = plain, 0
        while not wire or len(wire) > MAX_NAME or wire in self._to_internal:
            wire, tries = f"{plain[:55]}_{_digest(name, tries)}", tries + 1
        return wire

    def wire(self, name: str) -> str:
        """The wire name of an offered tool, or a legal form of any other name."""
        known = self._to_wire.get(name)
        return known if known is not None else self._free_name(name)

    def internal(self, wire: str) -> str:
        """The internal name behind a wire name; an exact internal name is accepted, an unknown one comes back as is."""
        return self._to_internal.get(wire, wire)

    def offers(self, wire: str) -> bool:
        return wire in self._to_internal or wire in self._to_wire

    def definitions(self, tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The definitions as they go out: wire names, and descriptions of at most 1,024 characters."""
        return [{**tool, "function": self._function(tool["function"])} for tool in tools]

    def _function(self, function: Mapping[str, Any]) -> dict[str, Any]:
        outgoing = {**function, "name": self._to_wire[function["name"]]}
        description = outgoing.get("description")
        if description and len(description) > MAX_DESCRIPTION:
            outgoing["description"] = description[: MAX_DESCRIPTION - 1] + "…"
        return outgoing

    def messages(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The history as it goes out: untouched, except for calls whose recorded name no server would accept."""
        return [self._with_legal_names(message) if message.get("tool_calls") else message for message in messages]

    def _with_legal_names(self, message: dict[str, Any]) -> dict[str, Any]:
        calls = message["tool_calls"]
        if all(LEGAL_NAME.fullmatch(call["function"]["name"]) for call in calls):
            return message
        legal = [{**call, "function": {**call["function"], "name": self._legal(call)}} for call in calls]
        return {**message, "tool_calls": legal}

    def _legal(self, call: Mapping[str, Any]) -> str:
        name: str = call["function"]["name"]
        return name if LEGAL_NAME.fullmatch(name) else self.wire(name)


def plain_form(name: str) -> str:
    """Return the name's form on the wire, unless that is too long or another name of a request has it."""
    if LEGAL_NAME.fullmatch(name) and "__" not in name:
        return name
    return _ILLEGAL_RUN.sub("_", name.replace(".", "__"))


def _digest(name: str, tries: int) -> str:
    """Eight characters; others at each try, because names can be made so that their first ones are equal."""
    return hashlib.sha256(f"{name}{' ' * tries}".encode("utf-8", "surrogatepass")).hexdigest()[:8]


@functools.lru_cache(maxsize=256)
def table_for(names: tuple[str, ...]) -> WireNames:
    """The table of these names; kept, because every pass of a run offers the same ones."""
    return WireNames(names)
