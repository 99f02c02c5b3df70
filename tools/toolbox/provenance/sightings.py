"""Sightings: the origins of the values in a call's params, and their JSON for storage."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from tools.toolbox.value_readings import is_same_name

MAX_KEPT = 200
"""The maximum number of sightings that a call keeps; sightings from outside are kept first."""
MAX_SHOWN = 200
"""The maximum number of characters of a value in a sighting."""


class SeenIn(StrEnum):
    """The place where a value was seen before."""

    PERSON = "person"
    """A person typed it in this run."""
    OUTSIDE = "outside"
    """It is in a result from outside: the web, a connected source, or an uploaded file."""
    OWN = "own"
    """It is in a result of a tool on the organization's own data."""
    NOWHERE = "nowhere"


@dataclass(frozen=True)
class Sighting:
    """The origin of one value, or of one part of a value, such as the host of an address.

    Attributes:
        path: the place in the params, such as `records.2.email`; entries of lists are numbered from
            0.
        param: the same place without numbers, as conditions name it.
        stands_out: the param names a recipient, destination, account, right, amount or command.
        tool, call_id, run_id: the call whose result has the value; empty if the origin is not a
            call.
        title: the tool's name for people, or another description of the source.
        is_stored: True if `call_id` is the call that stored the value; `title` still names the tool
            that brought it in.
        keys: digests of the value and of its parts, by which they are recognized once stored.
        is_field: True if it is a whole field in a result of the tool's source; see `FieldValues`.
    """

    path: str
    param: str
    value: str
    origin: SeenIn
    stands_out: bool = False
    tool: str = ""
    title: str = ""
    call_id: int | None = None
    run_id: int | None = None
    keys: tuple[str, ...] = ()
    is_stored: bool = False
    is_field: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the sighting as a call keeps it, without the fields that are empty."""
        kept = {
            "path": self.path,
            "param": self.param,
            "value": shorten(self.value),
            "origin": self.origin.value,
            "stands_out": self.stands_out,
            "tool": self.tool,
            "title": self.title,
            "call": self.call_id,
            "run": self.run_id,
            "is_stored": self.is_stored,
            "is_field": self.is_field,
            "keys": list(self.keys) if self.origin is SeenIn.OUTSIDE else None,
        }
        return {key: value for key, value in kept.items() if value not in ("", None, False, [])}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Sighting":
        """Load a sighting from `as_json`."""
        return cls(
            path=str(stored["path"]),
            param=str(stored["param"]),
            value=str(stored.get("value", "")),
            origin=SeenIn(stored["origin"]),
            stands_out=bool(stored.get("stands_out")),
            tool=str(stored.get("tool", "")),
            title=str(stored.get("title", "")),
            call_id=stored.get("call"),
            run_id=stored.get("run"),
            keys=tuple(stored.get("keys", ())),
            is_stored=bool(stored.get("is_stored")),
            is_field=bool(stored.get("is_field")),
        )


class OutsideKeys(NamedTuple):
    """The keys of a value from outside; `param` and `title` are those of its sighting."""

    param: str
    title: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Provenance:
    """The origins of the values in a call's params.

    Attributes:
        unlisted: the keys of values from outside whose sightings were not kept, because there were
            too many.
        unsearched: the number of values that were not looked for, because the params have too many.
        is_partial: the results were too large to be searched completely.
        unseen_names: the params with an id or an address, in any part of a value, that a person did
            not type and that is not in own data.
    """

    sightings: tuple[Sighting, ...] = ()
    unsearched: int = 0
    is_partial: bool = False
    unlisted: tuple[OutsideKeys, ...] = ()
    unseen_names: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """True if all values were looked for in all results, and all sightings are listed."""
        return not (self.unsearched or self.is_partial or self.unlisted)

    def list_outside(self) -> list[Sighting]:
        """List the sightings from outside; those that stand out come first."""
        found = [sighting for sighting in self.sightings if sighting.origin is SeenIn.OUTSIDE]
        return sorted(found, key=lambda sighting: not sighting.stands_out)

    def find_outside(
        self, param: str, *, is_folded: bool = True, counts_fields: bool = True
    ) -> Sighting | None:
        """Return the first sighting from outside in this param, or in a value inside it.

        Args:
            is_folded: True to include other spellings of the param's names.
            counts_fields: True to include values that are whole fields of results.
        """
        path = param.split(".")
        for sighting in self.sightings:
            counts = sighting.origin is SeenIn.OUTSIDE and (counts_fields or not sighting.is_field)
            if counts and _is_inside(sighting, path, is_folded):
                return sighting
        return None

    def list_outside_keys(self) -> list[OutsideKeys]:
        """List the keys of all values from outside, listed or not."""
        return [*_list_keys(self.sightings), *self.unlisted]

    def list_own_keys(self) -> list[str]:
        """List the keys of all values that come from own data."""
        return sorted(
            {key for each in self.sightings if each.origin is SeenIn.OWN for key in each.keys}
        )

    def mark_stored(self, stored: Mapping[str, Sighting]) -> "Provenance":
        """Return a copy in which own values that were stored from outside are treated as values
        from outside.

        Args:
            stored: for each key, the sighting whose title and call are used.
        """
        return replace(self, sightings=tuple(_mark_stored(each, stored) for each in self.sightings))

    def as_json(self) -> dict[str, Any]:
        """Return the JSON that a call keeps; `unlisted` counts the sightings that are left out."""
        ordered = sorted(self.sightings, key=lambda sighting: sighting.origin is not SeenIn.OUTSIDE)
        return {
            "sightings": [sighting.as_json() for sighting in ordered[:MAX_KEPT]],
            "unlisted": len(ordered[MAX_KEPT:]),
            "unlisted_keys": [*_list_keys(ordered[MAX_KEPT:]), *self.unlisted],
            "unsearched": self.unsearched,
            "is_partial": self.is_partial,
            **({"unseen_names": list(self.unseen_names)} if self.unseen_names else {}),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> "Provenance":
        """Load the JSON of `as_json`; None means that the values of the call were not looked
        for."""
        if not stored:
            return cls()
        sightings = tuple(Sighting.from_json(each) for each in stored["sightings"])
        kept_keys = stored.get("unlisted_keys", ())
        unlisted = tuple(OutsideKeys(param, title, tuple(keys)) for param, title, keys in kept_keys)
        return cls(
            sightings,
            stored["unsearched"] + stored["unlisted"],
            stored["is_partial"],
            unlisted,
            tuple(stored.get("unseen_names", ())),
        )


def _is_inside(sighting: Sighting, path: list[str], is_folded: bool) -> bool:
    names = sighting.param.split(".")[: len(path)]
    return names == path or (
        is_folded and len(names) == len(path) and all(map(is_same_name, names, path))
    )


def _list_keys(sightings: Iterable[Sighting]) -> list[OutsideKeys]:
    return [
        OutsideKeys(each.param, each.title, each.keys)
        for each in sightings
        if each.origin is SeenIn.OUTSIDE
    ]


def _mark_stored(sighting: Sighting, stored: Mapping[str, Sighting]) -> Sighting:
    key = (
        next((key for key in sighting.keys if key in stored), None)
        if sighting.origin is SeenIn.OWN
        else None
    )
    if key is None:
        return sighting
    first = stored[key]
    source = {
        "tool": first.tool,
        "title": first.title,
        "call_id": first.call_id,
        "run_id": first.run_id,
    }
    return replace(sighting, origin=SeenIn.OUTSIDE, keys=(key,), is_stored=True, **source)  # type: ignore[arg-type]


def shorten(text: str) -> str:
    """Shorten a value to MAX_SHOWN characters."""
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
