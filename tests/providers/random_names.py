"""Random sets of tool names, including deliberately similar names, and the rules for names on
the wire."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from hypothesis import strategies as st

from agents.providers.wire_names import LEGAL_NAME, MAX_TOOLS, WireNames

EQUAL_DIGESTS = ("crm." + "x" * 60 + "12588", "crm." + "x" * 60 + "172744")
"""Names with the same beginning, whose SHA-256 digests start with the same eight characters."""

_NEAR = st.text("aA_.-é", min_size=1, max_size=6)
_LEGAL_IN_THE_TOOLBOX = st.from_regex(
    r"[A-Za-z][A-Za-z0-9_-]{0,8}(\.[A-Za-z][A-Za-z0-9_-]{0,8}){0,2}", fullmatch=True
)
_LONG = st.builds(
    lambda start, fill, end: start + "." + fill * 60 + end, _NEAR, st.sampled_from("ab_."), _NEAR
)
_ANY = st.text(st.characters(), max_size=90)
_ONE = st.one_of(_NEAR, _LEGAL_IN_THE_TOOLBOX, _LONG, _ANY, st.sampled_from(EQUAL_DIGESTS))


def taken_from(name: str) -> str:
    """Return a tool name that equals the form in which another name may be sent on the wire."""
    plain = re.sub(r"[^a-zA-Z0-9_-]+", "_", name.replace(".", "__"))
    return f"{plain[:55]}_{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def _with_impostors(names: list[str], chosen: list[int]) -> list[str]:
    impostors = []
    for index in chosen:
        name = names[index % len(names)]
        impostors += [name.replace(".", "__"), taken_from(name), taken_from(taken_from(name))]
    return [*impostors, *names]


SETS_OF_NAMES = (
    st.builds(
        _with_impostors,
        st.lists(_ONE, min_size=1, max_size=30),
        st.lists(st.integers(0, 29), max_size=6),
    )
    .map(lambda names: list(dict.fromkeys(names)))
    .flatmap(st.permutations)
)
"""Lists of at most 48 different names in any order."""


def assert_reversible(names: Sequence[str]) -> None:
    """Check that each name is legal and unique on the wire, and can be translated back."""
    assert len(names) <= MAX_TOOLS
    table = WireNames(names)
    wires = [table.to_wire(name) for name in names]
    assert [wire for wire in wires if not LEGAL_NAME.fullmatch(wire)] == []
    assert len(set(wires)) == len(set(names))
    assert [table.to_internal(wire) for wire in wires] == list(names)
    stranger = table.to_wire(f"{names[0]}.not.offered")
    assert LEGAL_NAME.fullmatch(stranger)
    assert not table.is_offered(stranger)
