"""Definitions of a server's tools, as plain values that can be stored."""

import hashlib
import math
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import mcp_types
from pydantic import ValidationError

from tools.contract import Level, canonical_json, fingerprint, make_storable
from tools.schemas.adaptation import MAX_DESCRIPTION_LENGTH, SchemaAdapter
from tools.schemas.expansion import IllegalSchemaError
from tools.sources.mcp.display_text import clean_line, clean_text
from tools.sources.risks import explain_embedded_requests, explain_exfiltration
from tools.toolbox import is_run_parameter

MAX_NAME_LENGTH = 64
MAX_TITLE_LENGTH = 100
SCHEMAS = SchemaAdapter(is_run_parameter, clean_text)

_LEGAL = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z][A-Za-z0-9_-]*)*")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Definition:
    """A tool as its server describes it.

    Attributes:
        name: the server's name for the tool.
        legal_name: the part of the tool's name in the toolbox that follows the source's name.
        title: for people; may be empty.
        description: for the model, at most 1,024 characters.
        input_schema: for the model, with the names of `shown_names`.
        output_schema: the schema of structured content; None if the server declares none.
        annotations: the server's hints, e.g. {"readOnlyHint": true}, which do not have an effect by
            themselves.
        shown_names: {name for the model: the server's own name}, where they differ.
        copies_params: the server wants some params in HTTP headers, too.
        hash: changes whenever the server's description of the tool changes, except for titles.
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
        """Return the definition as plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Restore a definition from `to_json`."""
        return cls(**stored)


@dataclass(frozen=True)
class SkippedTool:
    """A tool that is not offered, with the reason for the admin."""

    name: str
    reason: str


@dataclass(frozen=True)
class McpToolList:
    """A server and its tools.

    Attributes:
        name, version: the server's own name and version; may be empty.
        protocol: the protocol version in use, e.g. 2026-07-28.
        adapted: see `ReadTools`.
    """

    name: str
    version: str
    protocol: str
    tools: tuple[Definition, ...]
    skipped: tuple[SkippedTool, ...]
    adapted: tuple[SkippedTool, ...] = ()


def suggest_level(annotations: Mapping[str, Any], definition: Definition | None = None) -> Level:
    """Return the level that the server's hints suggest. They are untrusted, and only help the admin
    who sets the level.

    Args:
        definition: if given, a tool that can send data out is not a read, and a tool that embeds
            requests is destructive.
    """
    stored = {**(vars(definition) if definition is not None else {}), "annotations": annotations}
    if explain_embedded_requests(stored) is not None:
        return Level.DESTRUCTIVE
    if annotations.get("readOnlyHint") is True:
        return Level.WRITE if explain_exfiltration(stored) is not None else Level.READ
    return Level.WRITE if annotations.get("destructiveHint") is False else Level.DESTRUCTIVE


@dataclass(frozen=True)
class ReadTools:
    """The tools of a list, each read independently of the others.

    Attributes:
        skipped: tools that cannot be offered.
        adapted: tools that are offered without a part of their schemas, each with a note on that
            part.
    """

    definitions: tuple[Definition, ...]
    skipped: tuple[SkippedTool, ...]
    adapted: tuple[SkippedTool, ...]


def read_definitions(tools: Iterable[Any], ends_at: float = math.inf) -> ReadTools:
    """Read the tools, and list those that cannot be offered; names do not depend on the order of
    the tools.

    Args:
        tools: as the server sent them, of any JSON type.
        ends_at: a time of the monotonic clock; tools that are not read by then are skipped. A
            single tool may take seconds.
    """
    found, seen = list(tools), set[str]()
    definitions, skipped, adapted = list[Definition](), list[SkippedTool](), list[SkippedTool]()
    names = _assign_legal_names({name for tool in found if (name := _read_name(tool))})
    for number, tool in enumerate(found):
        if time.monotonic() > ends_at:
            skipped.append(
                SkippedTool(
                    "…", f"reading takes too long: {len(found) - number:,} more are skipped"
                )
            )
            break
        name = _read_name(tool)
        shown = clean_line(name, MAX_TITLE_LENGTH) or f"tool {number + 1}"
        try:
            if not name:
                raise IllegalSchemaError(
                    "it has no name" if isinstance(tool, dict) else "it is not an object"
                )
            if name in seen:
                raise IllegalSchemaError("the server lists two tools with this name")
            definition, notes = _read_definition(tool, names[name])
        except (IllegalSchemaError, RecursionError, ValueError) as error:
            reason = (
                str(error)
                if isinstance(error, IllegalSchemaError)
                else "its schema is not valid JSON"
            )
            skipped.append(SkippedTool(shown, reason))
        else:
            definitions.append(definition)
            adapted += [SkippedTool(shown, note) for note in notes]
        seen.add(name)
    return ReadTools(tuple(definitions), tuple(skipped), tuple(adapted))


def _read_name(tool: Any) -> str:
    """Return the tool's own name; an empty text if it has none."""
    name = tool.get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else ""


def _read_text(tool: Mapping[str, Any], key: str) -> str:
    value = tool.get(key)
    return value if isinstance(value, str) else ""


def _read_definition(tool: Mapping[str, Any], legal_name: str) -> tuple[Definition, list[str]]:
    """Read the definition; return it with notes on the parts of its schemas that are left out."""
    execution = tool.get("execution")
    if isinstance(execution, dict) and execution.get("taskSupport") == "required":
        raise IllegalSchemaError("it can only be called as a task, which Gadget does not support")
    name, description = _read_name(tool), _read_text(tool, "description")
    inputs, outputs = tool.get("inputSchema"), tool.get("outputSchema")
    shown = SCHEMAS.read_params(inputs)
    shown_outputs, fault = SCHEMAS.read_output(outputs)
    annotations = _read_annotations(tool.get("annotations"))
    title = clean_line(_read_text(tool, "title") or annotations.pop("title", ""), MAX_TITLE_LENGTH)
    definition = Definition(
        name=name,
        legal_name=legal_name,
        title=title,
        description=clean_text(description, MAX_DESCRIPTION_LENGTH)
        or f"{legal_name}: no description.",
        input_schema=shown.schema,
        output_schema=shown_outputs,
        annotations=annotations,
        hash=fingerprint([name, description, inputs, outputs, annotations]),
        shown_names={renamed: own for own, renamed in shown.names.items()},
        copies_params="x-mcp-header" in canonical_json(inputs),
    )
    stored = definition.to_json()
    if make_storable(stored) != stored:
        raise IllegalSchemaError("its name or its schema contains characters that cannot be stored")
    return definition, [*shown.notes, *([f"its output schema: {fault}"] if fault else [])]


def _read_annotations(given: Any) -> dict[str, Any]:
    """Read the server's hints; leave out the invalid ones."""
    found: dict[str, Any] = {}
    for key, value in given.items() if isinstance(given, dict) else ():
        with suppress(ValidationError):
            hint = mcp_types.ToolAnnotations.model_validate({key: value}, by_name=False)
            found |= hint.model_dump(by_alias=True, mode="json", exclude_none=True)
    return found


def _assign_legal_names(names: set[str]) -> dict[str, str]:
    legal = {name: _to_legal_name(name) for name in names}
    taken = [legal_name.lower() for legal_name in legal.values()]
    return {
        name: legal_name
        if taken.count(legal_name.lower()) == 1
        else f"{legal_name[:55]}_{_digest(name)}"
        for name, legal_name in legal.items()
    }


def _to_legal_name(name: str) -> str:
    if len(name) <= MAX_NAME_LENGTH and _LEGAL.fullmatch(name):
        return name
    plain = _ILLEGAL.sub("_", name).strip("_")
    legal = plain if plain[:1].isalpha() else f"tool_{plain}" if plain else f"tool_{_digest(name)}"
    return legal if len(legal) <= MAX_NAME_LENGTH else f"{legal[:55]}_{_digest(name)}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
