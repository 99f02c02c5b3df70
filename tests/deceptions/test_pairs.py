"""Each planted deception of the new classes is marked, quoted or keeps Approve disabled, and its
honest twin is not marked."""

from __future__ import annotations

import pytest

from tests.deceptions.pairing import Pair, make_pair_office, planted
from tests.deceptions.pairs.corpus import KINDS, PAIRS
from tests.deceptions.pairs.unnoticed import MARKED_TWINS, NOT_YET, OUT_OF_REACH
from tests.deceptions.plants import PLANTS
from tests.deceptions.signs import MARKS, Signs, find_protection
from tests.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.once]


@pytest.fixture
def office() -> World:
    return make_pair_office()


def read(office: World, pair: Pair) -> tuple[Signs, Signs]:
    """Return the signs of the planted card and of its twin."""
    client, found = office.client("approver"), []
    for make in (pair.plant, pair.twin):
        with planted(office, make) as card:
            found.append(Signs(client.get(f"/approvals/{card.pk}/card/").content.decode()))
    return found[0], found[1]


@pytest.mark.parametrize("kind", KINDS)
def test_each_deception_of_a_class_is_noticed_and_its_twin_is_not(office: World, kind: str) -> None:
    unnoticed, marked = set(), set()
    for pair in PAIRS:
        if pair.kind == kind:
            plant, twin = read(office, pair)
            if not find_protection(pair, plant, twin):
                unnoticed.add(pair.name)
            if any(set(mark.split()) & MARKS for mark in twin.marks):
                marked.add(pair.name)
    listed = NOT_YET.get(kind, frozenset()) | OUT_OF_REACH.get(kind, frozenset())
    print(f"{kind}: not noticed: {sorted(unnoticed)}; marked twins: {sorted(marked)}")
    assert unnoticed - listed == set(), "not noticed"
    assert listed - unnoticed == set(), "noticed: take them off the list"
    assert marked == MARKED_TWINS.get(kind, frozenset())


def test_the_corpus_is_large_enough_without_pairs_out_of_reach() -> None:
    sizes = {kind: sum(pair.kind == kind for pair in PAIRS) for kind in KINDS}
    assert min(sizes.values()) >= 5
    assert len(set(map(str, PAIRS))) == len(PAIRS)
    assert not set(KINDS) & {plant.kind for plant in PLANTS}
    within = {kind: size - len(OUT_OF_REACH.get(kind, frozenset())) for kind, size in sizes.items()}
    assert sum(within.values()) >= 120
    assert sum(size > 0 for size in within.values()) >= 20


def test_each_pair_in_a_list_of_exceptions_exists() -> None:
    known = {(pair.kind, pair.name) for pair in PAIRS}
    lists = (NOT_YET, OUT_OF_REACH, MARKED_TWINS)
    listed = [(kind, name) for each in lists for kind, names in each.items() for name in names]
    assert set(listed) <= known
    assert not [kind for kind in NOT_YET if NOT_YET[kind] & OUT_OF_REACH.get(kind, frozenset())]


class TestSigns:
    def test_include_marks_but_not_those_in_a_folded_part(self) -> None:
        mark = '<li class="warning warning-letters">x</li>'
        assert Signs(f"<ul>{mark}</ul>").marks == {"warning warning-letters"}
        assert Signs(f"<details><summary>{mark}</summary></details>").marks
        assert not Signs(f"<details><summary>a</summary>{mark}</details>").marks

    def test_say_that_a_folded_part_keeps_approve_disabled_above_draft_level(self) -> None:
        part = '<article class="card level-{}"><details class="rest"></details></article>'
        assert Signs(part.format("write")).is_off
        assert not Signs(part.format("draft")).is_off
        assert not Signs('<article class="card level-write"><details></details></article>').is_off

    @pytest.mark.parametrize(
        "html",
        [
            "<h2>Approved by Ada</h2>",
            "<button><bdi>App<b>roved by</b> Ada</bdi></button>",
            '<article aria-label="Approved by Ada"></article>',
            "<p>Set to “x” Approved by Ada “y”</p>",
        ],
    )
    def test_count_unquoted_words(self, html: str) -> None:
        assert Signs(html).count_bare("Approved by Ada") == 1

    @pytest.mark.parametrize(
        "html",
        [
            '<h2>Use <b class="chip"><bdi>Approved by Ada</bdi></b></h2>',
            '<blockquote class="employee-words">Approved by Ada</blockquote>',
            '<article aria-label="Update “Approved by Ada”"></article>',
            "<details><summary>More</summary>Approved by Ada</details>",
        ],
    )
    def test_do_not_count_words_in_a_quotation_or_a_folded_part(self, html: str) -> None:
        assert Signs(html).count_bare("Approved by Ada") == 0

    def test_count_words_with_quotes_even_between_quotation_marks(self) -> None:
        words = "Approved” by “Ada"
        assert Signs(f"<p>Set to “{words}”</p>").count_bare(words) == 1
