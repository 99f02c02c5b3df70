"""Names under which tools are served: several clients refuse dots, and more than 48 characters.

A served name depends on nothing but the tool's own name. So it never refers to another tool when
tools are added or removed, and every process serves the same one.
"""

import base64
import functools
import hashlib
import re
from collections.abc import Container, Iterable

from agents.providers.wire_names import get_plain_wire_name

MAX_NAME = 48
"""Clients put the server's name before it, and model servers accept 64 characters."""
SERVED_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_NAME}}}")
TICKET_TOOL, CANCEL_TOOL = "gadget__ticket", "gadget__cancel"
"""The server's own tools; no other tool is served under these names."""
_OWN = {"gadget.ticket": TICKET_TOOL, "gadget.cancel": CANCEL_TOOL}
_CUT = "___"
"""Only a shortened name has three underscores, so it never equals one that is served whole."""
_DIGEST_BYTES = 10
"""80 bits, 16 characters: no two names can be crafted to share one."""
_WORD = re.compile(r"(?<![\w-])[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*)+", re.ASCII)


@functools.lru_cache(maxsize=16_384)
def get_served_name(name: str) -> str:
    """Return the served name of a tool: its dots as two underscores; with a digest where that is
    ambiguous or long."""
    plain = get_plain_wire_name(name)
    is_reversible = _CUT not in plain and plain.replace("__", ".") == name
    if is_reversible and SERVED_NAME.fullmatch(plain) and name not in _OWN:
        return plain
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:_DIGEST_BYTES]
    suffix = _CUT + base64.b32encode(digest).decode().lower()
    return plain[: MAX_NAME - len(suffix)].rstrip("_") + suffix


def find_tool_name(called: str, names: Iterable[str]) -> str | None:
    """Return the name of the tool that a client calls by its served or its own name; None if there
    is none.

    A text that can be a served name is one, even if a tool itself has that name.

    Args:
        names: those of all tools of the organization. Any other name with dots is returned as it
            is.
    """
    if not SERVED_NAME.fullmatch(called):
        return called
    dotted = called.replace("__", ".")
    if get_served_name(dotted) == called:
        return dotted
    return next((name for name in names if get_served_name(name) == called), None)


def get_own_name(called: str) -> str:
    """Return the served name of one of the server's own tools, which may be called with a dot;
    others unchanged."""
    return _OWN.get(called, called)


def name_as_served(text: str, names: Container[str]) -> str:
    """Return a text for a model in which each of these tools is called by its served name."""

    def replace(found: re.Match[str]) -> str:
        return get_served_name(found[0]) if found[0] in names else found[0]

    return _WORD.sub(replace, text)
