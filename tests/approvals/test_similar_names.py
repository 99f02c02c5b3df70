"""Cards warn of names that differ from a record's name in one letter, an accent or their last
words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.approvals.warnings.name_words import count_words
from agents.approvals.warnings.similar_names import find_similar_names, read_names
from tests.deceptions.harmless import make_harmless
from tests.deceptions.planting import make_office
from tests.features import feature
from tests.world import World
from tools.office.demo_companies import generate_demo_companies
from tools.office.records.models import Record

pytestmark = pytest.mark.django_db


def add(world: World, *names: str) -> list[Record]:
    return [Record.objects.create(organization=world.acme, name=name) for name in names]


def find(world: World, *values: str, label: str = "", own_id: int = 0) -> list[tuple[str, str]]:
    """Find the similar names of a call with these values, and of one target if a label is given."""
    targets = [{"id": str(own_id), "label": label}] if label else []
    found = find_similar_names(world.acme.pk, {1: read_names(targets, {"values": list(values)})})
    return [(one.value, one.name) for one in found.get(1, ())]


@feature(
    "The gate",
    "A name that differs from a record's in a letter, an accent or its ending is marked",
    "agents/approvals/warnings/similar_names.py",
)
@pytest.mark.parametrize(
    ("value", "name"),
    [
        *(("Initeche", "Initech"), ("Initch", "Initech"), ("Imitech", "Initech")),
        *(("Umbrelal", "Umbrella"), ("Acme Crop", "Acme Corp"), ("Acme Copr", "Acme Corp")),
        *(("Acme GmbH", "Acme Corp"), ("Acme Inc.", "Acme Corp"), ("Initech Ltd", "Initech")),
        *(("Acme", "Acme Corp"), ("ïnitech", "Initech"), ("UMBRÉLLÀ", "Umbrella")),
    ],
)
def test_a_value_that_differs_slightly_from_a_records_name_is_found(
    world: World, value: str, name: str
) -> None:
    assert find(world, value) == [(value, name)]
    assert find(world, name) == []
    assert find(world, "Another Company") == []


@pytest.mark.parametrize(
    ("value", "name"),
    [
        *(("Corp Acme", "Acme Corp"), ("Acme Corporation", "Acme Corp")),
        *(("Harbor North Trade", "North Trade Harbor"), ("Osprey Limited", "Osprey Ltd")),
    ],
)
def test_words_in_another_order_and_shortened_words_are_similar(
    world: World, value: str, name: str
) -> None:
    add(world, "North Trade Harbor", "Osprey Ltd")
    assert find(world, value) == [(value, name)]


@pytest.mark.parametrize(
    "value", ["Corp Zeta", "Acme Cortex", "North Harbor Fleet", "Osprey Leander", "Zeta Ltd"]
)
def test_names_with_other_or_longer_words_are_not_similar(world: World, value: str) -> None:
    add(world, "North Trade Harbor", "Osprey Ltd")
    assert find(world, value) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [("The Umbrella", "Umbrella"), ("Initech", "Le Initech"), ("Die Brücke", "Brücke")],
)
def test_a_target_that_differs_by_an_article_is_similar_but_a_value_is_not(
    world: World, one: str, other: str
) -> None:
    Record.objects.filter(organization=world.acme).delete()
    own, _ = add(world, one, other)
    assert find(world, label=one, own_id=own.pk) == [(one, other)]
    assert find(world, label="Big Harbor") == []
    Record.objects.filter(pk=own.pk).delete()
    assert find(world, f"To {other}") == []


@pytest.mark.parametrize("name", ["Initech 2", "Initech.com", "Initech Group"])
def test_a_target_with_one_more_word_is_similar_but_a_value_is_not(world: World, name: str) -> None:
    (record,) = add(world, name)
    assert find(world, label=name, own_id=record.pk) == [(name, "Initech")]
    record.delete()
    assert find(world, name) == []


@pytest.mark.parametrize(
    ("names", "value"),
    [
        (("Store 7",), "Store 8"),
        (("Invoice 1041",), "Invoice 1042"),
        (("Ann",), "Anna"),
        (("Team Blue A",), "Team Blue B"),
        (("Meridian Nord", "Meridian West"), "Meridian East"),
        (("Acme EU", "Acme US"), "Acme UK"),
        (("Maria Thompson",), "Maria Rodriguez"),
    ],
)
def test_names_in_a_series_and_short_names_are_not_similar(
    world: World, names: Sequence[str], value: str
) -> None:
    Record.objects.filter(organization=world.acme).delete()
    add(world, *names)
    assert find(world, value) == []


def test_common_words_that_differ_in_one_letter_are_not_similar(world: World) -> None:
    add(world, "Fernhill Leasing")
    assert find(world, "Fernhill Learning") == [("Fernhill Learning", "Fernhill Leasing")]
    firsts = ("Alder", "Birch", "Cedar")
    add(world, *(f"{first} {trade}" for first in firsts for trade in ("Leasing", "Learning")))
    assert find(world, "Fernhill Learning") == []


def test_names_are_not_similar_if_their_last_words_distinguish_other_names(world: World) -> None:
    add(world, "Priscilla Kim")
    assert find(world, "Priscilla Park") == [("Priscilla Park", "Priscilla Kim")]
    firsts = ("Minjun", "Jiwoo", "Seojun")
    add(world, *(f"{first} {last}" for first in firsts for last in ("Kim", "Park")))
    assert find(world, "Priscilla Park") == []


def test_names_with_different_last_words_are_similar_if_several_names_share_those_words(
    world: World,
) -> None:
    assert find(world, "Acme Limited") == []
    add(world, "Osprey Limited", "Quarry Limited", "Thistle Limited")
    assert find(world, "Acme Limited") == [("Acme Limited", "Acme Corp")]


def test_a_word_distinguishes_names_that_are_equal_without_it() -> None:
    words = count_words(("Ann Kim", "Ann Lee", "Bo Kim", "Bo Lee", "Cy Kim", "X Ltd", "Y Ltd"))
    assert not words.is_ending("kim")
    assert words.is_ending("ltd")
    assert words.is_common("kim")
    assert not words.is_common("ltd")


def test_a_renamed_record_is_not_compared_with_its_own_name(world: World) -> None:
    own = world.records[1]
    assert find(world, "Initechs", label="Initech", own_id=own.pk) == []
    assert find(world, "Initechs", label="Initech") == [("Initechs", "Initech")]


def test_a_similar_record_of_another_organization_is_not_found(world: World) -> None:
    Record.objects.create(organization=world.globex, name="Osprey Capital")
    assert find(world, "Osprey Capitel") == []
    add(world, "Osprey Capital")
    assert find(world, "Osprey Capitel") == [("Osprey Capitel", "Osprey Capital")]


def test_the_words_of_names_are_loaded_only_for_similar_names(world: World) -> None:
    for values, count in ((("Else", "Other Company"), 1), (("Initeche", "Umbrelal"), 2)):
        with CaptureQueriesContext(connection) as queries:
            find(world, *values)
        assert len(queries) == count


def test_at_most_two_percent_of_ordinary_cards_have_similar_names() -> None:
    office = make_office()
    cards = list(make_harmless(office))
    found = find_similar_names(
        office.acme.pk,
        {card.pk: read_names(card.preview["targets"], card.params) for card in cards},
    )
    assert len(found) <= len(cards) * 0.02, found


def test_at_most_two_percent_of_2000_companies_have_similar_names(world: World) -> None:
    companies = [each["name"] for each in generate_demo_companies(2_000)]
    records = Record.objects.bulk_create(
        Record(organization=world.acme, name=name) for name in companies
    )
    cards = {
        record.pk: read_names([{"id": str(record.pk), "label": record.name}], {})
        for record in records
    }
    found = find_similar_names(world.acme.pk, cards)
    assert len(found) <= len(companies) * 0.02, found
