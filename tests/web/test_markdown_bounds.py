"""Markdown is rendered quickly, and the HTML stays small; a text that is too complex is shown as
written."""

from __future__ import annotations

import asyncio
import time
from html import unescape

import pytest
from django.core.exceptions import SynchronousOnlyOperation

from agents.web.text.markdown import CUT_NOTE, NOTE, render_markdown, render_uncached
from tests.hostile.markdown import SHAPES, hostile_texts

MAX_BYTES = 200_000


def test_hostile_texts_render_quickly_and_stay_small() -> None:
    """This test renders a sample; `make soak` renders 1,000 hostile texts, each within 100 ms."""
    texts = list(hostile_texts(len(SHAPES) + 60))
    began = time.thread_time()
    sizes = [len(render_uncached(text).encode()) for text in texts]
    assert max(sizes) <= MAX_BYTES
    assert time.thread_time() - began < len(texts) * 0.3


def test_the_html_of_a_long_text_stays_small() -> None:
    wide = "|" + "a|" * 1_000 + "\n|" + "-|" * 1_000 + "\n" + "|\n" * 100_000
    for text in ("\x01" * 1_000_000, wide, "[a]: /" + "x" * 50_000 + "\n\n" + "[a]" * 50_000):
        assert len(render_uncached(text).encode()) <= 3 * MAX_BYTES


@pytest.mark.parametrize(
    "text", [">" * 50 + " deep", "- " * 60 + "deep", "|a|\n|-|\n" + "|deep|\n" * 3_900]
)
def test_a_text_that_is_too_complex_is_shown_as_written(text: str) -> None:
    html = render_uncached(text)
    assert NOTE in html
    assert text in unescape(html)


def test_a_text_that_is_too_long_even_as_written_is_cut_with_a_note() -> None:
    html = render_uncached("[" * 1_000 + "\x01" * 19_000)
    assert CUT_NOTE in html
    assert len(html.encode()) <= MAX_BYTES
    assert html.partition("<pre>")[2].startswith("[[[")


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("| a | b | c | d |\n|---|---|---|---|\n" + "| 1 | 2 | 3 | 4 |\n" * 400, "<td>4</td>"),
        ("- item **bold**\n  - nested\n" * 300, "<strong>bold</strong>"),
        ("".join("  " * depth + f"- level {depth}\n" for depth in range(8)), "level 7"),
        (
            "Hello **world**, this is [a link](https://a.example) with `code`.\n\n" * 1_500,
            "<strong>world</strong>",
        ),
    ],
    ids=["table", "list", "nested", "long"],
)
def test_ordinary_texts_are_formatted(text: str, tag: str) -> None:
    html = render_uncached(text)
    assert tag in html
    assert NOTE not in html


def test_a_text_is_rendered_once_for_each_heading_level() -> None:
    assert render_markdown("# once", under=1) is render_markdown("# once", under=1)
    assert render_markdown("# once", under=1) != render_markdown("# once", under=2)


def test_rendering_in_the_event_loop_is_refused() -> None:
    async def render() -> str:
        return render_markdown("# in the loop")

    with pytest.raises(SynchronousOnlyOperation):
        asyncio.run(render())
