"""Hostile text is rendered quickly, and its links are safe."""

from __future__ import annotations

import time

import pytest
from django.template import engines
from django.template.loader import render_to_string
from jinja2 import UndefinedError

from agents.runs.described import Description
from agents.runs.descriptions import describe
from agents.runs.models import CallStatus, Event, EventType, ToolCall
from agents.web.jinja_environment import JINJA
from agents.web.panel.lines import STATUS_ICONS
from agents.web.text import safe_text
from agents.web.text.markdown import render_markdown

LONG = 100_000
SECONDS = 15.0
"""The limit for one text: a quadratic pattern needs more than a minute; a linear pattern needs
hundredths of a second, or a second or two on a busy machine."""


@pytest.mark.parametrize(
    "piece",
    [
        "a", "a.", "\u0430", "\u0430b.", "-.", "xn--aaaaaa9a.", "\u202e", "\x01", "\u0430c.me ", "ü<", "www.", "** ",
        "\ufe0f", "a\ufe0f",
    ],
)  # fmt: skip
def test_a_long_text_of_any_kind_is_rendered_quickly(piece: str) -> None:
    text = piece * (LONG // len(piece)) + "!"
    for show in (
        safe_text.render_text,
        safe_text.replace_hidden_characters,
        safe_text.render_sentence,
        safe_text.quote_employee,
    ):
        began = time.process_time()
        show(text)
        assert time.process_time() - began < SECONDS, show.__name__


def test_a_host_of_mixed_alphabets_is_flagged_in_any_position() -> None:
    for host in (
        "g\u043e\u043egle.com.",
        "...\u0430cme.com",
        "a." * 20 + "\u0430cme.com",
        "x\u3164y.com",
    ):
        assert "mixed-host" in safe_text.render_text(f"<{host}>"), host


@pytest.mark.parametrize(
    "target",
    [
        "/admin/",
        "//evil.example/x",
        "approve",
        "?next=1",
        "#card-1",
        "http:/logout/",
        "ftp://a.example/",
    ],
)
def test_links_in_markdown_that_are_not_absolute_http_links_are_removed(target: str) -> None:
    assert "href" not in render_markdown(f"[click]({target})")


@pytest.mark.parametrize("target", ["http://a.example/", "https://a.example/b?c=d"])
def test_absolute_http_links_in_markdown_are_kept(target: str) -> None:
    assert f'href="{target}"' in render_markdown(f"[click]({target})")


def render_resolution(outcome: str) -> str:
    reason = "It reported after all: succeeded."
    payload = {"call_id": "1", "outcome": outcome, "by": "gadget", "reason": reason}
    about = {
        "line": {"seq": 1, "slot": "call-1", "moves_to_end": False},
        "call": ToolCall(
            pk=1, run_id=1, status=CallStatus.FAILED, level="write", params={}, pass_number=1
        ),
        "payload": payload,
        "description": describe(Event(type=EventType.CALL_RESOLVED, payload=payload)),
        "title": "Pay",
        "status_icon": STATUS_ICONS["succeeded"],
        "card": None,
        "marks": (),
        "child": None,
        "brief": "",
        "params": "",
        "original_params": "",
        "call_url": "",
        "source_name": "",
        "icon_name": "wrench",
        "level_icon": "eye",
    }
    return render_to_string("panel/call_resolved.html", about, using=JINJA)


def test_a_late_report_shows_only_its_reason() -> None:
    html = render_resolution("late_report")
    assert "It reported after all: succeeded." in html
    assert "It did not happen" not in html
    assert "It did not happen" in render_resolution("not_done")


def test_templates_escape_text_and_reject_undefined_names_and_methods() -> None:
    line = {"seq": 1, "slot": "", "moves_to_end": False}
    described = {"line": line, "description": Description('"><script>')}
    html = render_to_string("panel/note.html", described, using=JINJA)
    assert "<script" not in html
    assert 'data-seq="1"' in html
    with pytest.raises(UndefinedError):
        render_to_string("panel/note.html", {"line": line}, using=JINJA)
    for printed in ("text.upper", "call.get_status_display"):
        template = engines[JINJA].from_string(f"{{{{ {printed} }}}}")
        with pytest.raises(TypeError, match="parentheses"):
            template.render({"text": "a", "call": ToolCall(status=CallStatus.FAILED)})
