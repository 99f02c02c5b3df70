"""Recorded facts: the facts stored with a call, by which it is judged again without lookups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any

from tools.contract import ErrorCode, Level, ToolError
from tools.toolbox.facts import HISTORY, ToolTraits
from tools.toolbox.history import After, Period, StoredHistory, ToolHistory
from tools.toolbox.provenance import OwnData, Provenance


class MissingFact(Exception):
    """The verdict needs a fact that was not recorded, because the original verdict did
    not need it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the fact {name!r} was not recorded")
        self.name = name


class _KeptFacts(dict[str, Any]):
    """The recorded facts about earlier calls; reading any other fact raises `MissingFact`."""

    def __missing__(self, name: str) -> Any:
        raise MissingFact(f"history {name}")


@dataclass(frozen=True)
class _CompletedHistory:
    """The recorded facts about earlier calls; facts that were not recorded are rebuilt."""

    kept: ToolHistory
    rebuilt: ToolHistory

    def count(self, period: Period) -> int:
        try:
            return self.kept.count(period)
        except MissingFact:
            return self.rebuilt.count(period)

    def total(self, param: str, period: Period) -> Decimal:
        try:
            return self.kept.total(param, period)
        except MissingFact:
            return self.rebuilt.total(param, period)

    def find_unseen(self, after: After, values: Sequence[Any]) -> int | None:
        try:
            return self.kept.find_unseen(after, values)
        except MissingFact:
            return self.rebuilt.find_unseen(after, values)


@dataclass(frozen=True)
class RecordedTraits:
    """The properties of a tool that a verdict depended on, as they were then; see `ToolTraits`."""

    name: str
    id: str
    level: Level
    modes: frozenset[str] | None = None
    capabilities: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    open_world: bool = False
    is_from_outside: bool = False
    is_system: bool = False
    carries_requests: bool = False

    @classmethod
    def of(cls, tool: ToolTraits) -> "RecordedTraits":
        """Return the traits of a tool."""
        return cls(**{each.name: getattr(tool, each.name) for each in fields(cls)})

    def as_json(self) -> dict[str, Any]:
        """Return the traits by name, except those that have their default value."""
        kept = {each.name: getattr(self, each.name) for each in fields(self)}
        usual = {each.name: each.default for each in fields(self)}
        return {
            name: sorted(value) if isinstance(value, frozenset) else value
            for name, value in kept.items()
            if value != usual[name]
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "RecordedTraits":
        """Load traits.

        Raises:
            KeyError, TypeError, ValueError: these are not traits.
        """
        known = {each.name for each in fields(cls)}
        values: dict[str, Any] = {
            name: frozenset(value) if isinstance(value, list) else value
            for name, value in stored.items()
            if name in known
        }
        values["level"] = Level(stored["level"])
        return cls(**values)


@dataclass(frozen=True)
class RecordedCall:
    """A recorded call with everything that is stored about its judgment.

    Attributes:
        tool: the requested name.
        params: the canonical params; empty if the call was forbidden; its facts then hold the
            params if they are valid.
        provenance: as `Provenance.as_json`; None if the origins were not searched for.
        judgment: as `Verdict.as_json`.
        level, why: the level and the reason of the verdict.
    """

    tool: str
    params: Mapping[str, Any]
    provenance: Mapping[str, Any] | None
    judgment: Mapping[str, Any]
    level: str = ""
    why: str = ""

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.judgment["facts"] or {}

    @property
    def is_forbidden(self) -> bool:
        return bool(self.judgment["verdict"] == "forbidden")


@dataclass(frozen=True)
class RecordedFacts:
    """The facts stored with one call; a fact that is not stored raises `MissingFact`.

    Attributes:
        rebuilt: the source of facts about earlier calls that are not stored; None raises
            `MissingFact` for these too.
    """

    call: RecordedCall
    traits: ToolTraits
    rebuilt: ToolHistory | None = None

    def read(self, name: str) -> Any:
        """Return the recorded fact of this name.

        Raises:
            MissingFact: it was not recorded.
        """
        try:
            return self.call.facts[name]
        except KeyError:
            raise MissingFact(name) from None

    @property
    def params(self) -> dict[str, Any]:
        kept = self.call.facts
        if "error" in kept and "params" not in kept:
            raise self._load_error()
        return dict(self.read("params")) if self.call.is_forbidden else dict(self.call.params)

    @property
    def requests(self) -> tuple[str, ...]:
        return tuple(self.call.facts.get("requests", ()))

    @property
    def hosts(self) -> frozenset[str] | None:
        """The hosts that the call contacts. A call that was not forbidden and for which hosts are
        not stored does not contact any."""
        kept = self.call.facts
        if "error" in kept:
            raise self._load_error()
        reaches_out = self.traits.open_world or self.traits.is_from_outside
        if "hosts" not in kept and not (self.call.is_forbidden and reaches_out):
            return frozenset()
        hosts = self.read("hosts")
        return None if hosts is None else frozenset(hosts)

    @property
    def provenance(self) -> Provenance | None:
        if self.call.facts.get("is_traced") is False:
            return None
        if self.call.provenance is None:
            raise MissingFact("provenance")
        return Provenance.from_json(self.call.provenance)

    @property
    def own_data(self) -> OwnData:
        values, is_partial, *unseen = self.read("own_data")
        return OwnData(tuple(values), bool(is_partial), unseen == [True])

    @property
    def is_approved_before(self) -> bool:
        return bool(self.read("is_approved_before"))

    @property
    def history(self) -> ToolHistory | None:
        if self.rebuilt is not None and HISTORY not in self.call.facts:
            return self.rebuilt
        kept = self.read(HISTORY)
        if kept is None:
            return None
        stored = StoredHistory(_KeptFacts(kept))
        return stored if self.rebuilt is None else _CompletedHistory(stored, self.rebuilt)

    def _load_error(self) -> ToolError:
        code, message = self.read("error")
        return ToolError(ErrorCode(code), message, attempted=False)
