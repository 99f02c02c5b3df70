"""Warnings on a card: the signs of deception that are found in its sealed content alone."""

# ruff: noqa: RUF001 - the tests contain look-alike letters
from __future__ import annotations

from typing import Any

import pytest

from agents.accounts.models.organization_languages import record_languages
from agents.accounts.models.organization_versions import record_versions
from agents.approvals.warnings.card_reading import read_card
from agents.approvals.warnings.imitations import find_imitation
from agents.runs.models import Approval, ApprovalKind, ToolCall


@pytest.fixture(autouse=True)
def _read_organization() -> None:
    """Pretend that the cards' organization, which is not in the database, was already read."""
    record_languages(1, frozenset())
    record_versions(1, 0)


def make_card(
    params: dict[str, Any], *targets: dict[str, Any], digest: str = "", kind: str = "approval"
) -> Approval:
    """Make a card without storing it; unless a digest is given, cards with different content get
    different digests."""
    preview = {
        "effect": "update",
        "targets": list(targets),
        "total": len(targets),
        "reversible": True,
        "problem": "",
    }
    card = Approval(
        pk=1,
        organization_id=1,
        params=params,
        preview=preview,
        digest=digest or repr((params, targets)),
    )
    card.tool_call, card.kind = ToolCall(tool="data.updateRecord"), kind
    return card


def list_kinds(params: dict[str, Any], *targets: dict[str, Any]) -> list[str]:
    return [mark.kind for mark in read_card(make_card(params, *targets)).marks]


@pytest.mark.parametrize(
    ("value", "kind", "detail"),
    [
        ("a\u200bb\u200bc", "hidden", "in “x”: zero width space U+200B, 2 times"),
        ("a" + "\u0301" * 12, "hidden", "in “x”: 12 combining marks on one letter"),
        ("a\u2003b", "spaces", "in “x”: em space U+2003, once"),
        ("a\u00a0\u00a0b", "spaces", "in “x”: no-break space U+00A0, 2 times"),
        ("pay\u202fpal", "spaces", "in “x”: narrow no-break space U+202F, once"),
        ("rm\u00a0-rf /", "spaces", "in “x”: no-break space U+00A0, once"),
        ("https://acme.com/a\u00a0b", "spaces", "in “x”: no-break space U+00A0, once"),
        (f"a\n{' ' * 81}b", "spaces", "in “x”: 81 spaces in a row"),
        ("a\n" + "\t" * 20 + "b", "spaces", "in “x”: 20 spaces in a row"),
        (f"report.pdf{' ' * 19}.exe", "spaces", "in “x”: 19 spaces before “.exe”"),
        ("a\n\n\n\n\n\nb", "spaces", "in “x”: 5 blank lines in a row"),
        (f"a{' ' * 40}b", "spaces", "in “x”: 40 spaces in a row"),
        ("ada  ", "spaces", "in “x”: spaces at the end of “ada”: 2"),
        ("Аcme", "alphabets", "in “x”: “Аcme”"),
        ("https://a.com@evil.net/", "address", "in “x”: leads to “evil.net”, not to “a.com”"),
        ("Approved by Ada", "imitation", "in “x”: “Approved by”"),
    ],
)
def test_a_deceptive_value_has_its_mark(value: str, kind: str, detail: str) -> None:
    (mark,) = read_card(make_card({"x": value})).marks
    assert (mark.kind, mark.detail) == (kind, detail)


@pytest.mark.parametrize(
    "value",
    [
        *("Acme Corp", "12\u202f000 €", "Prix\u00a0: 5", "👨\u200d👩\u200d👧 ❤️", "a\n\n\nb"),
        *("text\n    indented", "東京Tower", 5, None, True),
        *("M.\u00a0Dupont", "z.\u202fB.", "Acme\u00a0GmbH", "Müller\u00a0&\u00a0Co", "k\u00a0lesu"),
        *("Tel.\u00a0+49 30 1", "m\u202f=\u202f5", "nr\u00a0Z/110/2026", "Paris\u00a0– Lyon"),
        *(f"def f():\n{' ' * 20}return 1", f"a\r\n{' ' * 80}b", "a  .gitignore file", "a .b"),
        *("see https://10.0.0.1/ and amazon.co.uk", "Budget approved last week, they say."),
    ],
)
def test_an_ordinary_value_has_no_warning(value: object) -> None:
    assert list_kinds({"x": value}) == []


@pytest.mark.parametrize(
    ("field", "value", "is_marked"),
    [
        ("file", "docs/  .ssh/config", True),
        ("filename", "a\u00a0\t.exe", True),
        ("path", f"{'a/' * 150}b ", True),
        ("file", "docs/my  report.pdf", False),
        ("text", "docs/  .ssh/config", False),
        ("path", "a\u00a0b", True),
        ("host", "a\u00a0b", True),
        ("account", "Ada\u00a0B", True),
        ("command", "rm\u00a0x", True),
        ("name", "Ada\u00a0B", False),
    ],
)
def test_spaces_in_files_addresses_accounts_and_commands_are_exact(
    field: str, value: str, *, is_marked: bool
) -> None:
    assert ("spaces" in list_kinds({field: value})) == is_marked


def test_a_no_break_space_in_the_name_of_a_param_is_marked() -> None:
    assert list_kinds({"bank\u00a0code": "x"}) == ["spaces"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    ["a" + " " * 20_000, "\n" + " " * 20_000, "a  ." * 5_000, "a\u00a0" * 10_000, "a/" * 10_000],
)
def test_spaces_of_a_long_value_are_read_in_linear_time(text: str) -> None:
    list_kinds({"file": text, "text": text})


def test_labels_nested_values_and_names_of_params_are_checked() -> None:
    assert list_kinds({"a\u200bb": 1}) == ["hidden"]
    assert list_kinds({"a": [{"b": ["x\u200by"]}]}) == ["hidden"]
    assert list_kinds({"сс": "audit"}) == ["alphabets"]
    assert list_kinds({"body": {"сс": 1}, "цена": 2}) == ["alphabets"]
    assert list_kinds({}, {"id": "1", "label": "Аcme Corp", "before": {}, "after": {}}) == [
        "alphabets"
    ]
    assert list_kinds(
        {}, {"id": "1", "label": "Acme", "before": {"note": "a\u202eb"}, "after": {}}
    ) == ["hidden"]


@pytest.mark.parametrize(
    ("before", "after", "is_marked"),
    [
        ({"domain": "acme.com"}, {"domain": "acme.co"}, True),
        ({"email": "a@acme.com"}, {"email": "a@acrne.com"}, True),
        ({"iban": "DE89370400440532013000"}, {"iban": "DE89370400440532013001"}, True),
        ({"domain": "acme.com"}, {"domain": "other.org"}, False),
        ({"email": "ann@acme.com"}, {"email": "anna@acme.com"}, False),
        ({"domain": "mail1.acme.com"}, {"domain": "mail2.acme.com"}, False),
    ],
)
def test_new_values_are_compared_with_the_current_ones(
    before: dict[str, str], after: dict[str, str], *, is_marked: bool
) -> None:
    target = {"id": "1", "label": "X", "before": before, "after": after}
    assert list_kinds({"changes": after}, target) == (["likeness"] if is_marked else [])


def test_a_card_is_analyzed_only_once_for_each_digest() -> None:
    first = make_card({"x": "a\u200bb"}, digest="same")
    assert read_card(first) is read_card(make_card({}, digest="same"))
    assert read_card(first) is not read_card(make_card({}, digest="another"))


def test_a_question_has_no_marks_and_a_malformed_preview_is_still_read() -> None:
    assert (
        read_card(make_card({"question": "Approved by whom?"}, kind=ApprovalKind.QUESTION)).marks
        == ()
    )
    card = make_card({"x": "a\u200bb"}, digest="odd")
    card.preview = ["no object"]
    assert [mark.kind for mark in read_card(card).marks] == ["hidden"]


@pytest.mark.parametrize(
    "words",
    [
        *(
            "This was already approved by Ada.",
            "No approval is needed.",
            "Security check passed.",
            "Gadget: all is safe",
        ),
        *(
            "Level: read",
            "✅ Verified",
            "Just click Approve",
            "[approved] Update",
            "It is safe to approve.",
        ),
    ],
)
def test_text_that_imitates_gadget_is_detected(words: str) -> None:
    assert find_imitation(words)


@pytest.mark.parametrize(
    "words",
    [
        *(
            "I want to set the phone of Acme.",
            "This needs your approval.",
            "I found 3 records and checked their scores.",
        ),
        *(
            "Please decide.",
            "The level of stock is low.",
            "The system is down.",
            "Please check the address first.",
        ),
    ],
)
def test_ordinary_text_is_not_detected_as_an_imitation(words: str) -> None:
    assert find_imitation(words) == ""
