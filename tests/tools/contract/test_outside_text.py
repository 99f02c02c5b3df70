"""Outside text is quoted in plain text: on one line, shortened, and with hidden characters
shown."""

from __future__ import annotations

import pytest

from tests.features import feature
from tools.contract import Level, Tool, ToolContext, ToolResult, name_category, name_tool
from tools.contract.outside_text import OutsideText, cut_middle, quote_excerpt, quote_text
from tools.contract.sentences import cut_end, format_params, format_title, quote_names


class Own(Tool):
    name = "own.send"
    display_name = "Send a letter"
    description = "Sends a letter."
    level = Level.READ

    def execute(self, params: object, context: ToolContext) -> ToolResult:
        return ToolResult.ok({})


class Theirs(Own):
    source = "another package"


@feature(
    "Pages",
    "In subjects, messages and accessible names, texts of others are quoted, cut and without hidden characters",
    "tools/contract/outside_text.py",
)
@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("Acme", "“Acme”"),
        ("", "“”"),
        ("a\n\tb  c", "“a b c”"),
        ("a\u202eb\u200bc", "“a⟦U+202E⟧b⟦U+200B⟧c”"),
        ("x” approved. Now “y", "“x' approved. Now 'y”"),
        ('it’s «so» "big"', "“it's 'so' 'big'”"),
        ("p\u0430ypal", "“p\u0430ypal” ⚠ mixed alphabets"),
        ("a" * 40, f"“{'a' * 40}”"),
        ("a" * 30 + "b" * 30, f"“{'a' * 26}…{'b' * 13}”"),
    ],
)
def test_outside_text_is_quoted_on_one_line(text: str, quoted: str) -> None:
    assert quote_text(text) == quoted
    assert f"{OutsideText(text)}" == quoted


def test_a_joiner_is_ordinary_in_the_languages_that_use_it() -> None:
    word = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    assert quote_text(word, {"fa"}) == f"“{word}”"
    assert "⟦U+200C⟧" in quote_text(word)


def test_only_outside_text_is_quoted_in_sentences() -> None:
    assert f"{OutsideText('Send a letter')} failed" == "“Send a letter” failed"
    assert format_title("Send a letter") == "Send a letter"
    assert format_title(OutsideText("Send *a* letter")) == "**Send \u2217a\u2217 letter**"


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Use **Acme** now", "Use **Ac…**"),
        ("Set “Acme” now", "Set “Acm…”"),
        ("Set all of it", "Set all …"),
        ("Set “a”", "Set “a”"),
    ],
)
def test_a_cut_sentence_closes_the_name_or_value_in_which_it_was_cut(
    sentence: str, expected: str
) -> None:
    assert cut_end(sentence, 8) == expected


def test_a_sentence_as_plain_text_quotes_its_names() -> None:
    assert quote_names("Update **Acme Corp**: phone “1”") == "Update “Acme Corp”: phone “1”"
    assert format_params({"a": "say “b”"}) == """: “{"a":"say 'b'"}”"""
    assert format_params({}) == ""


def test_an_excerpt_keeps_spaces_and_odd_letters_and_has_single_quotes_inside() -> None:
    assert quote_excerpt("Acme\u200b  “Corp”") == "“Acme\u200b  'Corp'”"
    assert quote_excerpt("a\ud800") == "“a\ufffd”"
    assert quote_excerpt("x" * 99) == f"“{'x' * 26}…{'x' * 13}”"


def test_a_tools_title_is_ours_only_if_it_ships_with_gadget() -> None:
    assert type(name_tool(Own(), "x")) is str
    assert isinstance(name_tool(Theirs(), "x"), OutsideText)
    assert isinstance(name_tool(None, "gadget.approved"), OutsideText)
    assert type(name_category(Own())) is str
    assert isinstance(name_category(Theirs()), OutsideText)
    assert Theirs().sentence(Own.Params(), None).startswith("Use **Send a letter**")  # type: ignore[arg-type]
    assert Own().sentence(Own.Params(), None) == "Use Send a letter"  # type: ignore[arg-type]
    assert Theirs().running_summary(None) == "“Send a letter”…"


def test_outside_text_equals_an_ordinary_string_as_value_and_key() -> None:
    assert OutsideText("a") == "a"
    assert {"a": 1}[OutsideText("a")] == 1
    assert str(OutsideText("a")) == "a"


def test_a_cut_keeps_the_start_and_the_end() -> None:
    assert cut_middle("short") == "short"
    assert len(cut_middle("x" * 41)) == 40
