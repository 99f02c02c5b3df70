"""Tool names of any form survive the round trip to the model and back."""

import re
from typing import Any

import pytest
from hypothesis import given, settings

from agents.providers.base import ProviderError
from agents.providers.wire_names import WireNames
from tests.providers.conftest import definition
from tests.providers.random_names import EQUAL_DIGESTS, SETS_OF_NAMES, assert_reversible, taken_from

LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
HARD_NAMES = [
    "data.searchRecords",
    "data__searchRecords",
    "data.search.records",
    "search_google",
    "crm.créer un contact",
    "crm.cr_er_un_contact",
    "a" * 64,
    "long." + "x" * 80 + "1",
    "long." + "x" * 80 + "2",
    "日本",
    "中国",
    "",
]


def test_every_name_is_legal_when_sent_and_maps_back() -> None:
    names = WireNames(HARD_NAMES)
    wires = [names.to_wire(name) for name in HARD_NAMES]
    assert all(LEGAL.fullmatch(wire) for wire in wires)
    assert len(set(wires)) == len(HARD_NAMES)
    assert [names.to_internal(wire) for wire in wires] == HARD_NAMES


@settings(max_examples=150)
@given(SETS_OF_NAMES)
def test_any_names_become_legal_and_unique_and_map_back(names: list[str]) -> None:
    assert_reversible(names)


def test_deliberately_similar_names_stay_distinct() -> None:
    first, second = EQUAL_DIGESTS
    assert taken_from(first) == taken_from(second)
    assert_reversible([first, second])
    assert_reversible([taken_from(first), second, first, taken_from(taken_from(first))])


def test_legal_names_are_unchanged_and_dots_become_two_underscores() -> None:
    names = WireNames(["search_google", "data.searchRecords"])
    assert names.to_wire("search_google") == "search_google"
    assert names.to_wire("data.searchRecords") == "data__searchRecords"


def test_two_underscores_never_become_a_dot_by_text_replacement() -> None:
    names = WireNames(["utility.now"])
    assert names.to_internal("data__searchRecords") == "data__searchRecords"


def test_the_internal_name_is_accepted_and_an_unknown_name_is_returned_unchanged() -> None:
    names = WireNames(["data.searchRecords"])
    assert names.to_internal("data.searchRecords") == "data.searchRecords"
    assert names.to_internal("delete_everything") == "delete_everything"


def test_129_tools_are_refused_with_their_number() -> None:
    with pytest.raises(ProviderError, match="129") as caught:
        WireNames([f"data.tool{number}" for number in range(129)])
    assert caught.value.code == "refused"
    assert not caught.value.transient


def test_a_description_is_cut_at_1024_characters_and_the_definition_stays_whole() -> None:
    tool = definition("data.searchRecords", "x" * 2000)
    outgoing = WireNames(["data.searchRecords"]).rename_definitions([tool])[0]["function"]
    assert len(outgoing["description"]) == 1024
    assert outgoing["name"] == "data__searchRecords"
    assert tool == definition("data.searchRecords", "x" * 2000)


def test_messages_are_copied_only_if_they_contain_an_illegal_name() -> None:
    names = WireNames(["data.searchRecords"])
    fine = {
        "role": "assistant",
        "tool_calls": [{"id": "1", "function": {"name": "data__searchRecords"}}],
    }
    dotted: dict[str, Any] = {
        "role": "assistant",
        "tool_calls": [{"id": "2", "function": {"name": "data.searchRecords"}}],
    }
    kept, changed = names.rename_messages([fine, dotted])
    assert kept is fine
    assert changed["tool_calls"][0]["function"]["name"] == "data__searchRecords"
    assert dotted["tool_calls"][0]["function"]["name"] == "data.searchRecords"
