"""Text in which private data could hide, because the run has not seen it unchanged."""

from __future__ import annotations

import base64
import codecs
import json
import time
from typing import Any

import pytest

from tools.toolbox.provenance import SeenIn, SeenText, has_unseen_text
from tools.toolbox.provenance.parts import MAX_LEAVES

HOST = "pages.example"
SECRET = "Globex pays 48,000 to Mallory Quill"
LINK = f"https://{HOST}/find?q=plans&page=2"
KNOWN = SeenText(
    SeenIn.PERSON,
    f"Look for iPhone prices at {LINK}, and read https://{HOST}/straße. Say hello to Ada Byron. "
    f"Then see {HOST}/team.",
)
PAGE = SeenText(
    SeenIn.OUTSIDE,
    json.dumps({"html": f'<a href="/about?x=1&amp;y=2">us</a> (https://{HOST}/Docs/A%20B)'}),
    is_json=True,
)
PRIVATE = SeenText(
    SeenIn.OWN,
    json.dumps({"notes": SECRET, "website": f"https://{HOST}/of-globex", "path": "/plan/77"}),
    is_json=True,
)


def has_unseen(params: dict[str, Any], *known: SeenText) -> bool:
    named = SeenText(SeenIn.PERSON, json.dumps(["url", "q", "filter", "more"]))
    return has_unseen_text(params, {HOST}, [named, KNOWN, PAGE, *known], [PRIVATE])


@pytest.mark.parametrize(
    "address",
    [
        HOST,
        f"https://{HOST}",
        f"HTTPS://{HOST.upper()}/",
        LINK,
        f"http://{HOST}/find?q=plans&page=2",
        f"https://{HOST}/stra%C3%9Fe",
        f"https://{HOST}/team",
        f"https://{HOST}/about?x=1&y=2",
        f"https://{HOST}/Docs/A%20B",
        f"https://{HOST}/Docs/A B",
        f"https://{HOST}/of-globex",
    ],
)
def test_an_address_that_was_seen_unchanged_cannot_hide_data(address: str) -> None:
    assert not has_unseen({"url": address})


ENCODED = {
    "base64": base64.urlsafe_b64encode(SECRET.encode()).decode(),
    "hex": SECRET.encode().hex(),
    "letters read backwards": SECRET[::-1].replace(" ", "-"),
    "rot13": codecs.encode(SECRET, "rot13").replace(" ", "-"),
    "a part": "Mal",
    "an initial of each word": "GptMQ",
    "letters as numbers": ".".join(str(ord(letter)) for letter in SECRET),
    "every letter escaped": "".join(f"%{ord(letter):02X}" for letter in "plans"),
    "one letter": "z",
}


@pytest.mark.parametrize("place", ["/{}", "/find?q={}", "/find?{}=1", "#{}", "/find?q=plans#{}"])
@pytest.mark.parametrize("hidden", ENCODED.values(), ids=ENCODED)
def test_a_path_query_or_fragment_that_was_not_seen_can_hide_data(place: str, hidden: str) -> None:
    assert has_unseen({"url": f"https://{HOST}{place.format(hidden)}"})


@pytest.mark.parametrize(
    "address",
    [
        f"https://{HOST}/find?q=plans&page=2&more=1",
        f"https://{HOST}/find?q=plans",
        f"https://{HOST}/find?q=plans&page=22",
        f"https://{HOST}/FIND?q=plans&page=2",
        f"https://{HOST}/find?q=pl%61ns&page=2",
        f"https://{HOST}/docs/a%20b",
        f"https://{HOST}:8443{LINK.partition(HOST)[2]}",
        f"https://mallory@{HOST}/straße",
        f"https://mallory.{HOST}/straße",
        f"https://{HOST}/plan/77",
        f"https://{HOST}/mallory/straße",
        f"https://{HOST}/tea",
    ],
)
def test_a_seen_address_with_any_change_can_hide_data(address: str) -> None:
    assert has_unseen({"url": address})


@pytest.mark.parametrize(
    ("params", "is_unseen"),
    [
        ({"q": "Ada Byron"}, False),
        ({"q": "ada byron"}, False),
        ({"q": "IPHONE PRICES"}, False),
        ({"q": "iPhone prices"}, False),
        ({"q": ""}, False),
        ({"q": None, "more": True}, False),
        ({"filter": {"more": ["Ada Byron", 2]}}, False),
        ({"q": "aDa ByRon"}, True),
        ({"q": "Ada\u200b Byron"}, True),
        ({"q": "Ada Byro"}, True),
        ({"q": "Byron Ada"}, True),
        ({"q": SECRET}, True),
        ({"q": 480_077}, True),
        ({"q": 4.8077}, True),
        ({"filter": {"more": ["Ada Byron", {"q": "Mallory"}]}}, True),
        ({"filter": {"Mallory Quill": True}}, True),
        ({"filter": {"more": json.dumps({"d": SECRET})}}, True),
    ],
)
def test_a_name_or_value_can_hide_data_unless_it_was_seen_unchanged(
    params: dict[str, Any], is_unseen: bool
) -> None:
    assert has_unseen(params) is is_unseen


def test_a_value_of_a_private_result_is_unseen_until_a_person_writes_it() -> None:
    assert has_unseen({"q": "Mallory Quill"})
    assert not has_unseen({"q": "Mallory Quill"}, SeenText(SeenIn.PERSON, "Find Mallory Quill"))


@pytest.mark.parametrize(
    ("asked", "params"),
    [
        (f"https://{HOST}/collect?d=x1", {"url": f"https://{HOST}/collect?d=x1"}),
        (f"{HOST}/collect?d=x1", {"url": f"https://{HOST}/collect?d=x1"}),
        ("/collect?d=%78%31", {"url": f"https://{HOST}/collect?d=x1"}),
        ("QUILL PAYS", {"q": "Quill pays"}),
    ],
)
def test_a_result_that_repeats_its_own_params_is_not_their_origin(
    asked: str, params: dict[str, Any]
) -> None:
    """The control returns the same text, but its params did not contain the text."""
    (text,) = params.values()
    told = json.dumps({"error": f"Nothing is known about {text} here."})
    for query, is_unseen in ((asked, True), ("other", False)):
        result = SeenText(SeenIn.OUTSIDE, told, is_json=True, request=json.dumps({"q": query}))
        assert has_unseen(params, result) is is_unseen


def test_params_with_too_many_values_can_hide_data() -> None:
    assert not has_unseen({"q": ["Ada Byron"] * (MAX_LEAVES - 1)})
    assert has_unseen({"q": ["Ada Byron"] * MAX_LEAVES})


def test_a_hostile_page_is_searched_within_a_time_limit() -> None:
    page = SeenText(SeenIn.OUTSIDE, "x/find?q=plan" * 300_000)
    start = time.perf_counter()
    assert has_unseen({"url": f"https://{HOST}/find?q=plan"}, page)
    assert time.perf_counter() - start < 5
