"""Risks of an external tool that its level does not cover, derived from its stored definition."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tools.contract import find_address_params
from tools.sources.embedded_requests import detect_embedded_requests

OPEN_WORLD = "openWorldHint"
"""The hint with which an MCP server declares that its tool reaches other servers."""
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_MAX_NAMED = 5


def explain_embedded_requests(definition: Mapping[str, Any]) -> str | None:
    """Return why the tool may embed other requests, as part of a sentence; None if it cannot."""
    path = re.split("[/:]", str(definition.get("path", "")).partition("?")[0])
    end = "/".join([each for each in path if each and "{" not in each][-2:])
    names = {
        "its id": definition.get("operation_id"),
        "its path": end,
        "its name": definition.get("name"),
    }
    known = {where: text for where, text in names.items() if isinstance(text, str)}
    return detect_embedded_requests(
        known, get_schema(definition), only_reads=definition.get("method") in _READS
    )


def explain_exfiltration(definition: Mapping[str, Any]) -> str | None:
    """Return why the tool may send data to any address, as part of a sentence; None if it
    cannot."""
    if named := sorted(find_address_params(get_schema(definition))):
        more = "…" if len(named) > _MAX_NAMED else ""
        return f"its params name addresses: {', '.join(named[:_MAX_NAMED])}{more}"
    annotations = definition.get("annotations")
    says_so = isinstance(annotations, Mapping) and annotations.get(OPEN_WORLD) is True
    return f"it declares that it reaches other servers ({OPEN_WORLD})" if says_so else None


def list_risks(definition: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each risk to weigh when choosing the tool's level."""
    if (carries := explain_embedded_requests(definition)) is not None:
        yield f"One approval runs every request inside the call, whatever its level: {carries}."
    if (reaches := explain_exfiltration(definition)) is not None:
        yield (
            f"A model can use it to send data out, because {reaches}. "
            "Read and draft calls need approval only if they contact a host that is not allowed, or send your own data."
        )


def get_schema(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of the params in the definition of a source's tool."""
    schema = definition.get("input_schema") or definition.get("params")
    return schema if isinstance(schema, Mapping) else {}
