"""Names the risks of a tool from outside beyond its level, from its stored description."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tools.contract import address_params

from .carriers import why_carries

OPEN_WORLD = "openWorldHint"
"""The hint by which an MCP server says that its tool reaches other servers."""
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_MOST_NAMED = 5


def carried_by(definition: Mapping[str, Any]) -> str:
    """Say why the tool may carry other requests, as part of a sentence; empty if nothing says so."""
    path = re.split("[/:]", str(definition.get("path", "")).partition("?")[0])
    end = "/".join([each for each in path if each and "{" not in each][-2:])
    names = {"its id": definition.get("operation_id"), "its path": end, "its name": definition.get("name")}
    known = {where: text for where, text in names.items() if isinstance(text, str)}
    return why_carries(known, _schema(definition), only_reads=definition.get("method") in _READS)


def reached_by(definition: Mapping[str, Any]) -> str:
    """Say why the tool may send data to an address that a model chooses, likewise."""
    if named := sorted(address_params(_schema(definition))):
        more = "…" if len(named) > _MOST_NAMED else ""
        return f"its params name addresses: {', '.join(named[:_MOST_NAMED])}{more}"
    annotations = definition.get("annotations")
    says_so = isinstance(annotations, Mapping) and annotations.get(OPEN_WORLD) is True
    return f"it says that it reaches the open world ({OPEN_WORLD})" if says_so else ""


def risks_of(definition: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each risk to weigh when choosing its level."""
    if carries := carried_by(definition):
        yield f"One approval runs every request that it carries, whatever those do: {carries}."
    if reaches := reached_by(definition):
        yield (
            f"A model can use it to send data out, because {reaches}. "
            "At the levels read and draft, a person is asked only before it reaches a host that is not allowed."
        )


def _schema(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = definition.get("input_schema") or definition.get("params")
    return schema if isinstance(schema, Mapping) else {}
