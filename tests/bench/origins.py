"""The time to search a megabyte of results for the origins of params, compared with the time to
split the same megabyte into words."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from tests.bench.figures import Figure, figure
from tools.contract import canonical_json
from tools.toolbox.provenance import SeenIn, SeenText, SourceIndex, trace

MEGABYTE = 1_000_000
RESULTS = 20
TRIES = 7
AIM = 1.25
PARAMS = {
    "to": "mallory@evil.example",
    "iban": "DE89370400440532013000",
    "amount": 9999.5,
    "name": "Mallory Smith",
    "body": "Hello Kim.\nPlease see https://evil.example/foo for more.",
}


def origins() -> list[Figure]:
    """Measure the search and the splitting alternately, by processor time."""
    texts = [canonical_json({"data": _make_prose(MEGABYTE // RESULTS)}) for _ in range(RESULTS)]
    whole = "\n".join(texts)

    def search() -> None:
        sources = [
            SeenText(SeenIn.OUTSIDE if at % 2 else SeenIn.OWN, text, is_json=True)
            for at, text in enumerate(texts)
        ]
        assert not trace(SourceIndex(sources), PARAMS).list_outside()

    ratios = [_measure(search) / _measure(lambda: whole.lower().split()) for _ in range(TRIES)]
    return [figure("origins in a megabyte of results: times splitting it", "", ratios, AIM)]


def _make_prose(characters: int) -> str:
    chance = random.Random(7)
    words = [
        "".join(chance.choices("abcdefghijklmnop", k=chance.randint(2, 9))) for _ in range(4_000)
    ]
    text = " ".join(
        chance.choice(words) + chance.choice(["", ",", ".", "\n", " 1,250 ", " 4711"])
        for _ in range(characters // 6)
    )
    return text[:characters]


def _measure(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
