"""What a server says of its tools, as plain values that can be kept."""

import hashlib
import math
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import mcp_types

from tools.contract import Level, canonical_json, fingerprint, made_storable
from tools.sources.given_schema import IllegalSchemaError, refuse_endless
from tools.sources.risks import carried_by, reached_by

from .schemas import LONGEST_DESCRIPTION, changed_names, refuse_illegal, tamed
from .words import one_line, shown

LONGEST_NAME = 64
LONGEST_TITLE = 100

_LEGAL = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z][A-Za-z0-9_-]*)*")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Definition:
    """One tool as its server describes it.

    Attributes:
        name: by which the server knows it.
        legal_name: by which the toolbox knows it, behind the source's name.
        title: for people; may be empty.
        description: for the model, at most 1,024 characters.
        input_schema: for the model, with the names of `shown_names`.
        output_schema: of the structured content; None if the server promises nothing.
        annotations: what the server hints at, e.g. {"readOnlyHint": true}; nothing follows from it by itself.
        shown_names: {name that the model is shown: the server's own}, where they differ.
        copies_params: the server wants some params as HTTP headers too.
        hash: changes whenever the server describes the tool in another way, titles apart.
    """

    name: str
    legal_name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    annotations: Mapping[str, Any]
    hash: str
    shown_names: Mapping[str, str] = field(default_factory=dict)
    copies_params: bool = False

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """What `to_json` made."""
        return cls(**kept)


@dataclass(frozen=True)
class LeftOut:
    """A tool that is not offered, and why, for the admin."""

    name: str
    reason: str


@dataclass(frozen=True)
class Listing:
    """A server and its tools.

    Attributes:
        name, version: as the server says; may be empty.
        protocol: the revision that both speak, e.g. 2026-07-28.
    """

    name: str
    version: str
    protocol: str
    tools: tuple[Definition, ...]
    left_out: tuple[LeftOut, ...]


def suggested_level(annotations: Mapping[str, Any], definition: Definition | None = None) -> Level:
    """Return the level that the server hints at. Do not trust it: it helps the admin who sets the level.

    Args:
        definition: if given, tools that can send data out are no reads, and those that carry requests are destructive.
    """
    kept = {**(vars(definition) if definition is not None else {}), "annotations": annotations}
    if carried_by(kept):
        return Level.DESTRUCTIVE
    if annotations.get("readOnlyHint") is True:
        return Level.WRITE if reached_by(kept) else Level.READ
    return Level.WRITE if annotations.get("destructiveHint") is False else Level.DESTRUCTIVE


def definitions_of(
    tools: Iterable[mcp_types.Tool], ends_at: float = math.inf
) -> tuple[list[Definition], list[LeftOut]]:
    """What can be offered of them, and what cannot. Names do not depend on the order in which the tools stand.

    Args:
        ends_at: on the monotonic clock; the tools that are not read by then are left out. One may take seconds.
    """
    found, left_out, seen = list(tools), [], set[str]()
    names = _legal_names({tool.name for tool in found})
    definitions = []
    for number, tool in enumerate(found):
        if time.monotonic() > ends_at:
            left_out.append(LeftOut("…", f"it takes too long to read: {len(found) - number:,} more are left out"))
            break
        try:
            if tool.name in seen:
                raise IllegalSchemaError("the server lists two tools of this name")
            definitions.append(_definition(tool, names[tool.name]))
        except (IllegalSchemaError, RecursionError, ValueError) as error:
            reason = str(error) if isinstance(error, IllegalSchemaError) else "its schema cannot be written as JSON"
            left_out.append(LeftOut(one_line(tool.name, LONGEST_TITLE), reason))
        seen.add(tool.name)
    return definitions, left_out


def _definition(tool: mcp_types.Tool, legal_name: str) -> Definition:
    inputs, outputs = tool.input_schema, tool.output_schema
    if tool.execution is not None and tool.execution.task_support == "required":
        raise IllegalSchemaError("it can only be called as a task, which Gadget does not support")
    for schema in (inputs, outputs):
        if schema is not None:
            refuse_illegal(schema)
    if inputs.get("type") != "object":
        raise IllegalSchemaError("its params are not an object")
    names = changed_names(inputs)
    shown_inputs = {"properties": {}, **tamed(inputs, names)}
    shown_outputs = None if outputs is None else tamed(outputs, {})
    for schema in (shown_inputs, shown_outputs):
        if schema is not None:
            refuse_endless(schema)
    annotations = tool.annotations.model_dump(by_alias=True, mode="json", exclude_none=True) if tool.annotations else {}
    title = one_line(tool.title or annotations.pop("title", ""), LONGEST_TITLE)
    promise = [tool.name, tool.description or "", inputs, outputs, annotations]
    definition = Definition(
        name=tool.name,
        legal_name=legal_name,
        title=title,
        description=shown(tool.description or "", LONGEST_DESCRIPTION)
        or f"{title or legal_name}: nothing more is said.",
        input_schema=shown_inputs,
        output_schema=shown_outputs,
        annotations=annotations,
        hash=fingerprint(promise),
        shown_names={told: own for own, told in names.items()},
        copies_params="x-mcp-header" in canonical_json(inputs),
    )
    kept = definition.to_json()
    if made_storable(kept) != kept:
        raise IllegalSchemaError("its name or its schema holds characters that cannot be kept")
    return definition


def _legal_names(names: set[str]) -> dict[str, str]:
    legal = {name: _legal_name(name) for name in names}
    taken = [told.lower() for told in legal.values()]
    return {
        name: told if taken.count(told.lower()) == 1 else f"{told[:55]}_{_digest(name)}" for name, told in legal.items()
    }


def _legal_name(name: str) -> str:
    if len(name) <= LONGEST_NAME and _LEGAL.fullmatch(name):
        return name
    plain = _ILLEGAL.sub("_", name).strip("_")
    made = plain if plain[:1].isalpha() else f"tool_{plain}" if plain else f"tool_{_digest(name)}"
    return made if len(made) <= LONGEST_NAME else f"{made[:55]}_{_digest(name)}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
