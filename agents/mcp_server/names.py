"""The names under which tools are served. They differ from the tools' own names, because several
clients refuse dots and names of more than 48 characters.

A served name depends only on the tool's own name. So it keeps its meaning when tools are added or
removed, and every process serves the same names.
"""

import base64
import functools
import hashlib
import re
from collections.abc import Container, Iterable

from agents.providers.wire_names import get_plain_wire_name

MAX_NAME = 48
"""The maximum length of a served name, in characters, because clients prefix it with the server's
name, and model servers accept only 64 characters."""
SERVED_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_NAME}}}")
TICKET_TOOL, CANCEL_TOOL = "gadget__ticket", "gadget__cancel"
"""The server's own tools; no other tool is served under these names."""
_OWN = {"gadget.ticket": TICKET_TOOL, "gadget.cancel": CANCEL_TOOL}
_CUT = "___"
"""The text before the digest in a served name; a name without a digest never contains three
underscores."""
_DIGEST_BYTES = 10
"""The length of the digest: 80 bits, or 16 characters, are enough that nobody can craft two names
with the same digest."""
_WORD = re.compile(r"(?<![\w-])[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*)+", re.ASCII)


@functools.lru_cache(maxsize=16_384)
def get_served_name(name: str) -> str:
    """Return the served name of a tool: dots become two underscores, and a digest is added if the
    name would be ambiguous or too long."""
    plain = get_plain_wire_name(name)
    is_reversible = _CUT not in plain and plain.replace("__", ".") == name
    if is_reversible and SERVED_NAME.fullmatch(plain) and name not in _OWN:
        return plain
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:_DIGEST_BYTES]
    suffix = _CUT + base64.b32encode(digest).decode().lower()
    return plain[: MAX_NAME - len(suffix)].rstrip("_") + suffix


def find_tool_name(called: str, names: Iterable[str]) -> str | None:
    """Return the name of the tool that a client calls by its served name or its own name; None if
    there is no such tool.

    A text that could be a served name is read as one, even if a tool has that text as its own name.
    Any other text, such as a name with dots, is returned unchanged.

    Args:
        names: the names of all tools of the organization.
    """
    if not SERVED_NAME.fullmatch(called):
        return called
    dotted = called.replace("__", ".")
    if get_served_name(dotted) == called:
        return dotted
    return next((name for name in names if get_served_name(name) == called), None)


def get_own_name(called: str) -> str:
    """Return the served name of one of the server's own tools, given its name with a dot; return
    any other name unchanged."""
    return _OWN.get(called, called)


def name_as_served(text: str, names: Container[str]) -> str:
    """Replace the names of these tools in a text for a model with their served names."""

    def replace(found: re.Match[str]) -> str:
        return get_served_name(found[0]) if found[0] in names else found[0]

    return _WORD.sub(replace, text)
