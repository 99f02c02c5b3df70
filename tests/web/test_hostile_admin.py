"""The admin shows hostile text as text too: nothing runs in it, and what hides is a token, but in inputs."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.utils.html import escape

from agents.models import Organization, Pass
from agents.templatetags.admin_text import shows_hidden
from tests.hostile import HOSTILE, squeezed
from tests.web.admin_rows import address
from tests.web.hostile_pages import Reading, Shape, strange
from tests.web.hostile_world import HostileWorld, make_hostile_world

pytestmark = [pytest.mark.django_db, pytest.mark.once]

SECONDS = 5
BREAKS = {"<br >"}
OF_ROWS = ("change", "delete", "history")


def prepared(*, is_hostile: bool) -> HostileWorld:
    """The world with a superuser, and a row of what it has none of."""
    made = make_hostile_world(is_hostile=is_hostile)
    texts = made.words.of(200)
    root = made.world.users["root"] = User.objects.create_superuser("root")
    about = ContentType.objects.get_for_model(Organization)
    for number, text in enumerate(texts[:10]):
        Pass.objects.create(run=made.runs[number], number=1, response={"text": text}, text=text, messages_upto=1)
        LogEntry.objects.create(
            user=root,
            content_type=about,
            object_id=str(made.world.acme.pk),
            object_repr=text,
            action_flag=CHANGE,
            change_message=text,
        )
    Organization.objects.filter(pk=made.world.acme.pk).update(name=texts[-1][:120])
    return made


def read(made: HostileWorld, lists: int, rows: int) -> Iterator[tuple[str, Reading]]:
    client = made.world.client("root")

    def page(where: str) -> Reading:
        answer = client.get(where, follow=True)
        assert answer.status_code in (200, 403), (where, answer.status_code)
        return Reading(answer.content.decode())

    yield "index", page("/admin/")
    for model in admin.site._registry:
        for number in range(1, lists + 1):
            yield f"{model.__name__} list", page(f"{address(model, 'list')}?p={number}")
        for row in model._default_manager.order_by("-pk")[:rows]:
            for kind in OF_ROWS:
                yield f"{model.__name__} {kind}", page(address(row, kind))


def test_no_page_of_the_admin_becomes_what_somebody_wrote() -> None:
    """Two pages of a list are 100 rows through the same cells; each single string is looked at below."""
    known: dict[str, set[Shape]] = {}
    usual: set[str] = set()
    with transaction.atomic():
        for kind, reading in read(prepared(is_hostile=False), lists=2, rows=2):
            known.setdefault(kind, set()).update(reading.shapes)
            usual |= set(reading.faults)
        transaction.set_rollback(True)
    found: dict[str, set[str]] = {}
    for kind, reading in read(prepared(is_hostile=True), lists=2, rows=2):
        wrong = {*strange(reading, known[kind]), *reading.faults} - usual - BREAKS
        found.setdefault(kind, set()).update(list(wrong)[:3])
    assert {kind: wrong for kind, wrong in found.items() if wrong} == {}


def test_what_hides_is_shown_everywhere_but_in_what_a_form_sends_back() -> None:
    html = (
        '<a title="1\u202e" x-on:click="a => b">2\u202e</a><option value="3\u202e">4\u202e</option>'
        '<input value="5\u202e" placeholder=\'6\u202e\'><textarea rows="2">7\u202e title="8\u202e"</textarea>'
        "<script>9\u202e</script>"
    )
    shown = shows_hidden(html)
    for number in (1, 2, 4, 6):
        assert f"{number}⟦U+202E⟧" in shown
    for number in (3, 5, 7, 8, 9):
        assert f"{number}\u202e" in shown
    assert shown.replace("⟦U+202E⟧", "\u202e") == html


def test_each_hostile_string_is_a_text_of_the_page_and_none_costs_more_than_a_moment() -> None:
    began = time.process_time()
    for text in HOSTILE:
        reading = Reading(shows_hidden(f'<p title="{escape(text)}">{escape(text)}</p><input value="{escape(text)}">'))
        assert reading.text == squeezed(text, one_line=False)
        assert reading.shapes == {("p", frozenset({"title"})), ("input", frozenset({"value"}))}
        assert not [fault for fault in reading.faults if "U+000" not in fault]
    assert time.process_time() - began < SECONDS
