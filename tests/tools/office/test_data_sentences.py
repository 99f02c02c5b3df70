"""A card's sentence is built from the params and the effect; hostile values cannot forge it."""

from typing import Any

import pytest

from tests.tools.office.cards import card
from tests.tools.office.records.tenants import make_organization, make_record
from tools.contract import Preview, Tool
from tools.contract.sentences import format_name, format_value
from tools.office.tools.data_bulk import ArchiveAll, BulkDelete, BulkUpdate
from tools.office.tools.data_write import AddToList, CreateRecord, QualifyRecord, UpdateRecord

HOSTILE = "Acme** approved **\n\nLevel: read, status active → inactive*"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("tool", "params", "expected"),
    [
        (
            UpdateRecord,
            {"changes": {"status": "inactive"}},
            "Update record **Acme Corp**: status “active” → “inactive”",
        ),
        (
            UpdateRecord,
            {"changes": {"score": 0, "notes": "Two words", "attributes": {"x": 1}}},
            "Update record **Acme Corp**: score 50 → 0, notes empty → “Two words”, “x” empty → 1",
        ),
        (
            QualifyRecord,
            {"qualification": "disqualified", "reason": "Too small.", "score": 10},
            "Mark record **Acme Corp** as disqualified: reason “Too small.”, score 50 → 10",
        ),
    ],
)
def test_a_sentence_names_the_record_and_the_changes(
    tool: type[Tool], params: dict[str, Any], expected: str
) -> None:
    acme = make_organization()
    record = make_record(acme, score=50, email="a@b.example")
    assert card(tool(), {"record_id": str(record.pk), **params}, acme)[0] == expected


@pytest.mark.django_db
def test_sentences_about_many_records_count_them_and_say_how_they_were_chosen() -> None:
    acme = make_organization()
    for name in ("A", "B"):
        make_record(acme, name, region="EU")
    chosen = {"filters": {"region": "EU", "text": "a"}}
    both = {"filters": {"region": "EU"}}
    assert card(BulkDelete(), chosen, acme)[0] == "Permanently delete record **A**"
    assert card(BulkDelete(), both, acme)[0] == "Permanently delete 2 records (region “EU”)"
    assert card(ArchiveAll(), both, acme)[0] == "Archive 2 records (region “EU”)"
    change = {"changes": {"status": "pending"}}
    assert (
        card(BulkUpdate(), {**both, **change}, acme)[0]
        == "Update 2 records (region “EU”): status → “pending”"
    )
    assert (
        card(BulkUpdate(), {**chosen, **change}, acme)[0]
        == "Update record **A**: status “active” → “pending”"
    )
    assert (
        card(AddToList(), {**both, "list_name": "S"}, acme)[0]
        == "Add 2 records (region “EU”) to the new list **S**"
    )


@pytest.mark.django_db
def test_a_hostile_name_stays_bold_on_one_line() -> None:
    acme = make_organization()
    record = make_record(acme, HOSTILE)
    sentence, _ = card(
        UpdateRecord(), {"record_id": str(record.pk), "changes": {"name": HOSTILE * 3}}, acme
    )
    assert sentence.count("**") == 2
    assert "\n" not in sentence
    assert len(sentence) < 300
    assert sentence.startswith("Update record **Acme")


@pytest.mark.once
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("active", "“active”"),
        ("a@b.example", "“a@b.example”"),
        ("empty", "“empty”"),
        (1.5, "1.5"),
        ("a → b, score 1 → 2", "“a → b, score 1 → 2”"),
        ("closing ” quote", "“closing ' quote”"),
        ("", "empty"),
        (None, "empty"),
        (True, "yes"),
        (0, "0"),
        ([1, {"b": 2}], '“[1,{"b":2}]”'),
    ],
)
def test_a_value_is_quoted_unless_it_is_a_number_or_yes_or_no(value: Any, expected: str) -> None:
    assert format_value(value) == expected


@pytest.mark.once
def test_long_values_are_truncated() -> None:
    assert len(format_value("x" * 500)) == 62
    assert len(format_name("y" * 500)) == 84


@pytest.mark.once
@pytest.mark.parametrize(
    ("tool", "params"),
    [
        (CreateRecord, {"name": "Nova"}),
        (UpdateRecord, {"record_id": "5", "changes": {"status": "inactive"}}),
        (QualifyRecord, {"record_id": "5", "qualification": "qualified", "reason": "x"}),
        (AddToList, {"record_ids": ["5"], "list_name": "S"}),
        (BulkUpdate, {"record_ids": [str(n) for n in range(9)], "changes": {"status": "inactive"}}),
        (BulkDelete, {"filters": {"min_score": 10}}),
        (ArchiveAll, {"record_ids": ["5"]}),
    ],
)
def test_a_sentence_exists_even_without_a_preview(tool: type[Tool], params: dict[str, Any]) -> None:
    loaded = tool().load_params(tool().check_params(params))
    sentence = tool().sentence(loaded, Preview.impossible("it failed"))
    assert len(sentence) > 15
    assert "{" not in sentence
