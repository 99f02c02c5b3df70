"""The cost of a search: for a megabyte of results, about what it takes to split them into words once."""

import random
import time
from collections.abc import Callable

from tools.contract import canonical_json
from tools.toolbox.provenance import SeenIn, SeenText, SourceIndex, trace

MEGABYTE = 1_000_000
RESULTS = 20
MAX_RATIO = 1.25
PARAMS = {
    "to": "mallory@evil.example",
    "iban": "DE89370400440532013000",
    "amount": 9999.5,
    "name": "Mallory Smith",
    "body": "Hello Kim.\nPlease see https://evil.example/foo for more.",
}


def make_prose(characters: int) -> str:
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefghijklmnop", k=chance.randint(2, 9))) for _ in range(4_000)]
    text = " ".join(
        chance.choice(words) + chance.choice(["", ",", ".", "\n", " 1,250 ", " 4711"]) for _ in range(characters // 6)
    )
    return text[:characters]


def take_best(work: Callable[[], object], tries: int = 7) -> float:
    """Return the shortest processor time of several tries, in seconds."""
    times = []
    for _ in range(tries):
        before = time.process_time()
        work()
        times.append(time.process_time() - before)
    return min(times)


def test_a_megabyte_of_results_costs_about_what_splitting_it_into_words_does() -> None:
    texts = [canonical_json({"data": make_prose(MEGABYTE // RESULTS)}) for _ in range(RESULTS)]
    whole = "\n".join(texts)

    def search() -> None:
        sources = [
            SeenText(SeenIn.OUTSIDE if at % 2 else SeenIn.OWN, text, is_json=True) for at, text in enumerate(texts)
        ]
        assert not trace(SourceIndex(sources), PARAMS).list_outside()

    ratio = take_best(search) / take_best(lambda: whole.lower().split())
    assert ratio < MAX_RATIO, f"the search took {ratio:.2f} times as long"
