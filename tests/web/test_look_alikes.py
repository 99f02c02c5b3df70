"""Words that mix alphabets are flagged letter by letter; cards warn of names that look like another
record's."""

# ruff: noqa: RUF001 - the tests contain look-alike letters
from __future__ import annotations

import re

import pytest

from agents.approvals.warnings import similar_names
from agents.web.text.safe_text import flag_odd_letters, render_sentence, render_text
from tests.world import World, make_world
from tools.contract.look_alikes import reduce_to_joined_look, reduce_to_look
from tools.contract.odd_letters import find_odd_parts
from tools.office.records.changes import (
    ChangeAuthor,
    build_update_target,
    create_record,
    update_records,
)
from tools.office.records.models import Record


def find_odd_words(text: str) -> list[tuple[str, str]]:
    """Return the suspicious words with their suspicious letters."""
    return [
        (text[part.start : part.end], "".join(sorted(part.letters)))
        for part in find_odd_parts(text)
    ]


@pytest.mark.parametrize(
    ("text", "odd"),
    [
        ("Аcme Corp", [("Аcme", "А")]),
        ("pay to Gооgle", [("Gооgle", "о")]),
        ("Асе Corp", [("Асе", "Аес")]),
        ("Vitamin С", [("С", "С")]),
        ("ΑΒΕ Holding", [("ΑΒΕ", "ΑΒΕ")]),
        ("Micrοsoft", [("Micrοsoft", "ο")]),
        ("Ｐaypal", [("Ｐaypal", "Ｐ")]),
        ("𝐀cme", [("𝐀cme", "𝐀")]),
        ("Ελλάδa", [("Ελλάδa", "a")]),
        ("Ꭺcme", [("Ꭺcme", "Ꭺ")]),
        ("а\u0301cme", [("а\u0301cme", "а")]),
    ],
)
def test_a_word_of_two_alphabets_is_flagged(text: str, odd: list[tuple[str, str]]) -> None:
    assert find_odd_words(text) == odd


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Acme Corp",
            "Москва Office",
            "Она сказала ok",
            "IT-отдел",
            "USB-кабель",
            "東京Tower",
            "株式会社ABC",
            "ＡＢＣ株式会社",
        ),
        *(
            "한국Bank",
            "Δx = 3",
            "α=0.05",
            "5 μm",
            "αβ",
            "x² + yⁿ",
            "Nº 5, 1ª",
            "größe, naïve, Łódź, İstanbul",
            "α-helix",
        ),
        *(
            "Роса",
            "Привет мир",
            "مرحبا Acme",
            "שלום Acme",
            "नमस्ते Acme",
            "e\u0301t\u0301",
            "😀 Acme ™",
            "10 Ω, 300 K",
        ),
    ],
)
def test_honest_text_in_several_languages_is_not_flagged(text: str) -> None:
    assert find_odd_words(text) == []
    assert "mixed" not in render_text(text)
    assert flag_odd_letters(text) == text


def test_the_flag_names_the_letter_and_its_alphabet_and_a_host_has_only_one_flag() -> None:
    html = render_text("<Аcme> at раураl.com")
    assert '<span class="odd-letter" title="cyrillic capital letter a">А</span>cme' in html
    assert 'title="cyrillic capital letter a">⚠ mixed alphabets' in html
    assert html.count("⚠") == 2
    assert "<Аcme>" not in html
    assert flag_odd_letters("Аcme Corp") == "Аcme ⚠ mixed alphabets Corp"


def test_hidden_characters_in_an_odd_part_become_tokens_outside_its_title() -> None:
    html = render_text("pay 1\u061c00א200, d\u0336e\u200b\u0336")
    assert all("<" not in title for title in re.findall(r'title="([^"]*)"', html))
    assert html.count("⟦U+061C⟧") == 1
    assert html.count("<span") == html.count("</span>")


def test_bold_names_in_a_sentence_are_checked_separately() -> None:
    assert "mixed" not in render_sentence("Update record **Роса**: status active")
    assert "mixed" in render_sentence("Update record **Асе Corp**: status active")
    assert (
        render_sentence("a **<b>** c") == 'a <strong class="chip"><bdi>&lt;b&gt;</bdi></strong> c'
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(
            ("Acme Corp", "Аcme Corp"),
            ("Acme Corp", "Acrne Corp"),
            ("Alpha", "AIpha"),
            ("Acme 10", "Acme lO"),
        ),
        *(
            ("Acme Corp", "ACME\u00a0Corp"),
            ("Acme", "Ac\u200bme"),
            ("Acme", "Ａｃｍｅ"),
            ("Wave", "VVave"),
        ),
    ],
)
def test_names_that_look_the_same_have_the_same_look(one: str, other: str) -> None:
    assert reduce_to_look(one) == reduce_to_look(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Acme", "Acne"), ("Müller", "Muller"), ("Unit 2", "Unit 3"), ("Москва", "Mockva")],
)
def test_different_names_have_different_looks(one: str, other: str) -> None:
    assert reduce_to_look(one) != reduce_to_look(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(
            ("Acme Corp", "Acme Corp."),
            ("Acme Corp", "AcmeCorp"),
            ("Acme Corp", "Acme-Corp"),
            ("Acme Ltd", "Аcme-Ltd."),
        ),
        *(
            ("Acme Corp", "Acrne, Corp"),
            ("Acme Corp", "Acme\u2009Corp…"),
            ("Acme 10", "AcmelO"),
            ("A-1", "А-1"),
        ),
    ],
)
def test_spaces_and_punctuation_do_not_distinguish_names(one: str, other: str) -> None:
    assert reduce_to_joined_look(one) == reduce_to_joined_look(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(
            ("A & B", "AB"),
            ("Al Co", "Alco"),
            ("Unit 1-12", "Unit 11-2"),
            ("Version 1.5", "Version 15"),
        ),
        *(("Bar Nord", "Bamord"), ("Müller AG", "Muller AG"), ("...", "---"), ("Unit 2", "Unit-3")),
    ],
)
def test_different_names_have_different_joined_looks(one: str, other: str) -> None:
    assert reduce_to_joined_look(one) != reduce_to_joined_look(other)


@pytest.mark.django_db
@pytest.mark.once
class TestTheLookAlikeWarning:
    @pytest.fixture
    def world(self) -> World:
        """Build a world whose first record is Acme Corp."""
        return make_world()

    def page(self, world: World, record: Record, **changes: str) -> str:
        params = {"record_id": str(record.pk), "changes": changes}
        card = world.card(params=params)
        return world.client("approver").get(f"/approvals/{card.pk}/").content.decode()

    def create_look_alike(self, world: World, name: str) -> Record:
        return create_record(world.acme.pk, {"name": name}, ChangeAuthor("test"))

    @pytest.mark.parametrize(
        "name", ["Аcme Corp", "Acrne Corp", "Acme Corp.", "AcmeCorp", "Acme-Corp"]
    )
    def test_names_the_original_on_a_card_for_the_look_alike(self, world: World, name: str) -> None:
        html = self.page(world, self.create_look_alike(world, name), phone="+1")
        similar = html.split('class="obstacle similar"')[1].split("</p>")[0]
        assert "looks like the record" in similar
        assert '<bdi class="value">Acme Corp</bdi>' in similar

    def test_names_the_look_alike_on_a_card_for_the_original(self, world: World) -> None:
        self.create_look_alike(world, "Acrne Corp")
        assert '<bdi class="value">Acrne Corp</bdi>' in self.page(
            world, world.records[0], phone="+1"
        )

    def test_flags_a_value_that_resembles_another_record(self, world: World) -> None:
        other = self.create_look_alike(world, "Globe Trade")
        assert "looks like the record" in self.page(world, other, name="Acrne Corp")
        assert "looks like the record" not in self.page(world, other, name="acme corp")

    def test_finds_the_resembling_record_among_many_of_the_same_name(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(similar_names, "MAX_NAMES", 2)
        for name in ("Acme Corp", "Acme Corp", "Acrne Corp"):
            self.create_look_alike(world, name)
        assert '<bdi class="value">Acrne Corp</bdi>' in self.page(
            world, world.records[0], phone="+1"
        )

    def test_ignores_records_of_another_organization(self, world: World) -> None:
        create_record(world.globex.pk, {"name": "Acrne Corp"}, ChangeAuthor("test"))
        assert "looks like the record" not in self.page(world, world.records[0], phone="+1")

    def test_uses_the_new_name_of_a_renamed_record(self, world: World) -> None:
        record = self.create_look_alike(world, "Somebody Else")
        target = build_update_target(record, {"name": "Acrne Corp"})
        assert target is not None
        update_records(world.acme.pk, [target], ChangeAuthor("test"))
        record.refresh_from_db()
        assert record.look == world.records[0].look == reduce_to_joined_look("Acme Corp")
