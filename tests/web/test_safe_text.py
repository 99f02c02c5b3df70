"""Text from other people is shown safely: escaped, with hidden characters and mixed alphabets
flagged."""

from __future__ import annotations

import html
import re

import pytest

from agents.platform.value_text import MAX_LENGTH
from agents.web.text import safe_text
from agents.web.text.markdown import render_markdown


@pytest.mark.parametrize(
    ("hidden", "token"),
    [
        ("\u200b", "U+200B"),
        ("\u202e", "U+202E"),
        ("\u2066", "U+2066"),
        ("\x1b", "U+001B"),
        ("\x7f", "U+007F"),
        ("\ufeff", "U+FEFF"),
        ("\u00ad", "U+00AD"),
        ("\u3164", "U+3164"),
        ("\u2800", "U+2800"),
        ("\U000e0041", "U+E0041"),
        ("\U000e0100", "U+E0100"),
        ("\u2028", "U+2028"),
        ("\ud800", "U+D800"),
    ],
)
def test_hidden_characters_become_visible_tokens(hidden: str, token: str) -> None:
    assert f"⟦{token}⟧" in safe_text.render_text(f"a{hidden}b")
    assert safe_text.replace_hidden_characters(f"a{hidden}b") == f"a⟦{token}⟧b"


def test_a_decoded_host_does_not_contain_hidden_characters() -> None:
    assert "\x80" not in safe_text.render_text("xn--b-5ga.\x80.xn--b")
    assert "⟦U+0080⟧" in safe_text.render_text("see \x80.xn--b")


def test_text_around_tokens_is_escaped() -> None:
    assert safe_text.render_text("<img src=x>\u202e<b>").count("<") == 2
    assert "&lt;img" in safe_text.render_text("<img src=x>\u202e<b>")


@pytest.mark.parametrize(
    "text", ['<img src=x> & "it\'s"', "a.b <xn--80ak6aa92e.com>", "Plain words.", ""]
)
def test_text_is_escaped_in_the_same_way_with_and_without_a_hidden_character(text: str) -> None:
    with_token = safe_text.render_text(f"{text}\u202e")
    assert with_token.startswith(safe_text.render_text(text))
    without_marks = re.sub(
        r" <span class=.decoded.*</span>|<span[^>]*>[^<]*</span>", "", safe_text.render_text(text)
    )
    assert html.unescape(without_marks) == text


def test_plain_text_emoji_and_other_scripts_are_unchanged() -> None:
    text = "Grüße ❤️ שלום 東京 naïve"
    assert safe_text.render_text(text) == text


def test_a_sentence_renders_only_bold_markup_and_escapes_html() -> None:
    html = safe_text.render_sentence("Update **<script>alert(1)</script>** now\nand more")
    assert '<strong class="chip"><bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi></strong>' in html
    assert "<script>" not in html
    assert "⟦U+000A⟧" in html


def test_a_long_value_is_folded_with_its_length() -> None:
    html = safe_text.render_value("x" * 5000)
    assert '<details class="clamp">' in html
    assert "5,000 characters" in html
    assert "<details" not in safe_text.render_value("x" * MAX_LENGTH)


@pytest.mark.parametrize("host", ["\u0430cme.com", "g\u043e\u043egle.com", "xn--cme-7cd.com"])
def test_a_host_of_mixed_alphabets_is_flagged(host: str) -> None:
    assert "mixed-host" in safe_text.render_text(f"see https://{host}/login")


@pytest.mark.parametrize(
    "text",
    ["acme.com", "a.b@example.org", "version 1.2.3", "xn--bcher-kva.example", "bücher.example"],
)
def test_an_honest_host_is_not_flagged(text: str) -> None:
    assert "mixed-host" not in safe_text.render_text(text)


def test_quotes_of_employees_are_short_and_without_links() -> None:
    words = safe_text.quote_employee(
        "Please open https://evil.example/x and www.evil.example now. " + "y" * 500
    )
    assert len(words) == safe_text.MAX_QUOTE_LENGTH
    assert "evil" not in words


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "![x](https://evil.example/pixel.png)",
        "[x](javascript:alert(1))",
        '<img src="https://evil.example/x">',
        "<iframe src=//evil.example></iframe>",
        '[x](https://a.example "onmouseover=alert(1)")',
    ],
)
def test_rendered_markdown_does_not_load_or_run_anything(text: str) -> None:
    html = render_markdown(text)
    assert not any(
        forbidden in html
        for forbidden in ("<script", "<img", "<iframe", 'href="javascript', "title=")
    )


def test_links_in_markdown_do_not_send_a_referrer() -> None:
    html = render_markdown(
        "[site](https://a.example/) and | a |\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    )
    assert 'rel="nofollow noopener noreferrer"' in html
    assert "<table>" in html


def test_markdown_shows_hidden_characters() -> None:
    assert "⟦U+202E⟧" in render_markdown("pay \u202ebob")


@pytest.mark.parametrize("entity", ["&#8238;", "&#x200b;", "&ZeroWidthSpace;", "&shy;", "&#xFEFF;"])
def test_entities_in_markdown_cannot_hide_characters(entity: str) -> None:
    html = render_markdown(f"pay {entity}bob, [a{entity}b](https://a.example/)")
    assert html.count("⟦U+") >= 2


def test_a_host_of_mixed_alphabets_is_flagged_in_markdown() -> None:
    assert "p\u0430ypal.com ⚠ mixed alphabets" in render_markdown(
        "[https://p\u0430ypal.com](https://p\u0430ypal.com)"
    )
    assert "⚠" not in render_markdown("[https://paypal.com](https://paypal.com) in größe.de")
