"""Names that a model and the toolbox accept, made of a description's own; each the same every time."""

import hashlib
import re
import unicodedata
from collections.abc import Collection, Mapping
from typing import Any

from tools.toolbox import comes_from_the_run

LONGEST_TOOL_NAME = 64
LONGEST_PARAM_NAME = 64

_MARGIN = 4
"""So many times the length may be read to find as much that is no blank."""
_WORD = re.compile(r"[A-Za-z0-9]+")
_LEADING_CAPITALS = re.compile(r"^(?:[A-Z]+(?![a-z])|[A-Z])")
_ILLEGAL_IN_PARAM = re.compile(r"[^A-Za-z0-9_.-]+")


def words_in(text: str) -> frozenset[str]:
    """A set, written as words with blanks between them."""
    return frozenset(text.split())


def one_line(value: Any, longest: int) -> str:
    """The beginning of a text on one line, whose rest is not even read; empty if it is no text."""
    return " ".join(value[: _MARGIN * longest].split())[:longest] if isinstance(value, str) else ""


def tool_names(operation_ids: Mapping[str, str]) -> dict[str, str]:
    """For each operation's key (`GET /pets/{id}`), a name that differs from all others even without capitals.

    Where several operations would have the same name, each gets a piece of its key's hash, so that no name depends on
    the order in which they stand.

    Args:
        operation_ids: by key; empty where there is none.
    """
    names = {key: camel_case(operation_id) or camel_case(_spoken(key)) for key, operation_id in operation_ids.items()}
    names = {key: _shortened(name, key) for key, name in names.items()}
    for digits in (8, 16, 64):
        taken: dict[str, int] = {}
        for name in names.values():
            taken[name.lower()] = taken.get(name.lower(), 0) + 1
        doubled = [key for key, name in names.items() if taken[name.lower()] > 1]
        names.update({key: f"{names[key][:55]}_{_digest(key)[:digits]}" for key in doubled})
    return names


def camel_case(text: str) -> str:
    """`pets/list-all` → petsListAll; empty if nothing of the text is a letter or digit of ASCII."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = _WORD.findall(plain)
    joined = "".join([*words[:1], *(word[:1].upper() + word[1:] for word in words[1:])])
    if joined[:1].isdigit():
        return f"op{joined}"
    return _LEADING_CAPITALS.sub(lambda found: found[0].lower(), joined)


def param_name(wanted: str, taken: Collection[str], place: str) -> str:
    """A legal name for a parameter that is not taken: with its place added where needed, else with a hash.

    Args:
        taken: looked up in, never gone through: a set or a mapping.
    """
    name = shown_name(_ILLEGAL_IN_PARAM.sub("_", wanted).strip(".-") or "param")
    unique = f"{name[:50]}_{_digest(wanted)[:8]}"
    if len(name) > LONGEST_PARAM_NAME or not _ILLEGAL_IN_PARAM.sub("", wanted):
        name = unique
    candidates = (name, f"{name[:50]}_{place}", unique, f"{unique[:50]}_{place}")
    free = next((candidate for candidate in candidates if candidate not in taken), None)
    return free or f"{name[:20]}_{_digest(f'{place} {wanted} {len(taken)}')[:40]}"


def shown_name(name: str) -> str:
    """The name itself, or with one `_` more where the toolbox keeps it for what comes from the run (`user_id`)."""
    return f"{name}_" if comes_from_the_run(name.rstrip("_")) else name


def _spoken(key: str) -> str:
    """`GET /pets/{petId}` → get pets by petId."""
    method, _, path = key.partition(" ")
    return f"{method.lower()} {path.replace('{', ' by ')}"


def _shortened(name: str, key: str) -> str:
    return name if len(name) <= LONGEST_TOOL_NAME else f"{name[:55]}_{_digest(key)[:8]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
