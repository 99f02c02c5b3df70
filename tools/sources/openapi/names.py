"""Names for the model and the toolbox, derived from a description's own names in a stable way."""

import hashlib
import re
import unicodedata
from collections.abc import Collection, Mapping

from tools.toolbox import is_run_parameter

MAX_TOOL_NAME_LENGTH = 64
MAX_PARAM_NAME_LENGTH = 64

_WORD = re.compile(r"[A-Za-z0-9]+")
_LEADING_CAPITALS = re.compile(r"^(?:[A-Z]+(?![a-z])|[A-Z])")
_ILLEGAL_IN_PARAM = re.compile(r"[^A-Za-z0-9_.-]+")


def word_set(text: str) -> frozenset[str]:
    """Return the set of the words in the text, separated by spaces."""
    return frozenset(text.split())


def assign_tool_names(operation_ids: Mapping[str, str]) -> dict[str, str]:
    """Assign a name to each operation's key (`GET /pets/{id}`), unique even if case is ignored.

    Operations that would share a name get a part of their key's hash, so that no name depends on
    their order.

    Args:
        operation_ids: the operations' ids, by key; empty for an operation without an id.
    """
    names = {
        key: to_camel_case(operation_id) or to_camel_case(_spell_out(key))
        for key, operation_id in operation_ids.items()
    }
    names = {key: _shorten_name(name, key) for key, name in names.items()}
    for digits in (8, 16, 64):
        taken: dict[str, int] = {}
        for name in names.values():
            taken[name.lower()] = taken.get(name.lower(), 0) + 1
        duplicates = [key for key, name in names.items() if taken[name.lower()] > 1]
        names.update({key: f"{names[key][:55]}_{_digest(key)[:digits]}" for key in duplicates})
    return names


def to_camel_case(text: str) -> str:
    """Convert to camel case: `pets/list-all` → petsListAll; empty if none of its characters are
    ASCII."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = _WORD.findall(plain)
    joined = "".join([*words[:1], *(word[:1].upper() + word[1:] for word in words[1:])])
    if joined[:1].isdigit():
        return f"op{joined}"
    return _LEADING_CAPITALS.sub(lambda found: found[0].lower(), joined)


def choose_param_name(wanted: str, taken: Collection[str], place: str) -> str:
    """Choose a legal, unused name for a parameter; add its place or a hash if necessary.

    Args:
        taken: the used names, in a set or a mapping.
    """
    name = avoid_reserved_name(_ILLEGAL_IN_PARAM.sub("_", wanted).strip(".-") or "param")
    unique = f"{name[:50]}_{_digest(wanted)[:8]}"
    if len(name) > MAX_PARAM_NAME_LENGTH or not _ILLEGAL_IN_PARAM.sub("", wanted):
        name = unique
    candidates = (name, f"{name[:50]}_{place}", unique, f"{unique[:50]}_{place}")
    free = next((candidate for candidate in candidates if candidate not in taken), None)
    return free or f"{name[:20]}_{_digest(f'{place} {wanted} {len(taken)}')[:40]}"


def avoid_reserved_name(name: str) -> str:
    """Return the name, with an extra `_` if the toolbox reserves it, as for `user_id`."""
    return f"{name}_" if is_run_parameter(name.rstrip("_")) else name


def _spell_out(key: str) -> str:
    """Spell out a key: `GET /pets/{petId}` → get pets by petId."""
    method, _, path = key.partition(" ")
    return f"{method.lower()} {path.replace('{', ' by ')}"


def _shorten_name(name: str, key: str) -> str:
    return name if len(name) <= MAX_TOOL_NAME_LENGTH else f"{name[:55]}_{_digest(key)[:8]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
