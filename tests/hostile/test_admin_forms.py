"""The admin's pages for a single row show the hostile text of every field in full, and do not
execute any of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import CharField, ForeignKey, JSONField, Model, TextField
from django.test import Client

from agents.admin.confirmation import ConsequencesField
from agents.admin.credentials import NAME_HELP
from agents.admin.edit_conflicts import FingerprintsField
from agents.admin.tool_limits import LimitsField
from agents.runs.models import Approval, Message
from tests.admin.rows import address, make_admin_world
from tests.hostile import HOSTILE, packed
from tests.hostile.forms import (
    FilledRows,
    FormReading,
    all_strings,
    make_filled_rows,
    shown_fields,
    told_of,
    without_limits,
)
from tests.hostile.pages import Shape, strange, untold
from tests.hostile.world import IN_ALL

pytestmark = [pytest.mark.django_db, pytest.mark.once]

HOLDS_NOTHING_OF_OTHERS = {
    ("Approval", "level"): "one of the levels",
    ("ApprovalRule", "level"): "one of the levels",
    ("Employee", "mode"): "one of the toolbox's modes",
    ("Organization", "currency"): "three letters",
    ("Run", "lease_owner"): "the name of a worker, from Gadget",
    ("ToolCall", "level"): "one of the levels",
    ("ToolRule", "level"): "one of the levels",
    ("User", "password"): "a hash, of which a part is shown",
}
ENOUGH = 3
"""The number of faulty pages to report: searching for a missing text is slow."""
TITLES = ((Message, "text", 80), (Approval, "sentence", 120))
"""Rows whose titles show only the beginning of a text."""


@pytest.fixture(autouse=True)
def as_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable Pygments, which only the tests install and which would color JSON."""
    monkeypatch.setitem(sys.modules, "pygments", None)


def may(row: Model, act: str) -> bool:
    return bool(getattr(admin.site._registry[type(row)], f"may_{act}", True))


def read(client: Client, where: str, texts: list[str]) -> tuple[Any, FormReading, list[str]]:
    """Return the page, and the texts that it does not show."""
    response = client.get(where)
    assert response.status_code == 200, (where, response.status_code)
    reading = FormReading(response.content.decode())
    return response, reading, [text[:60] for text in texts if not reading.tells(text)]


def untold_by_form(
    row: Model, filled: FilledRows, response: Any, reading: FormReading
) -> Iterator[str]:
    """List the fields whose texts the page does not show in full, and the text fields that the test
    data left empty."""
    model, form = row._meta.object_name or "", response.context["adminform"].form
    columns = {column.name: column for column in row._meta.concrete_fields}
    for name in shown_fields(response):
        column, field = columns.get(name), form.fields.get(name)
        if (model, name) in HOLDS_NOTHING_OF_OTHERS:
            continue
        texts = filled.texts.get((model, name), [])
        if isinstance(column, ForeignKey) and getattr(row, name) is not None:
            texts = [str(getattr(row, name))]
        elif (
            not texts
            and isinstance(column, CharField | TextField | JSONField)
            and not column.choices
        ):
            yield f"{name}: is not filled"
        is_typed = field is not None and not isinstance(field, forms.ChoiceField)
        tells = reading.sends if is_typed else reading.tells
        yield from (f"{name}: {text[:60]}" for text in texts if not tells(text))


def refused(
    row: Model, filled: FilledRows, client: Client, page: str
) -> tuple[FormReading, list[str]]:
    """Submit all strings in each field of the form; return the form, with the texts that do not
    come back."""
    where = address(row, page)
    fields = client.get(f"{where}?for=other&kind=openapi").context["adminform"].form.fields
    typed = {
        name: filled.whole(f"{name} typed") for name, field in fields.items() if not is_tick(field)
    }
    sent = {
        **typed,
        **{name: text for key, text in typed.items() for name in list_boxes(fields[key], key)},
    }
    sent |= {"limits-0-sentence": "comparison"} if "limits" in fields else {}
    response = client.post(f"{where}?for=other&kind=openapi", sent)
    assert response.status_code == 200, (where, response.status_code)
    reading, form = FormReading(response.content.decode()), response.context["adminform"].form
    assert form.errors, where
    boxes = [
        name
        for name in typed
        if name in form.fields and not isinstance(form.fields[name], forms.ChoiceField)
    ]
    missing = [
        f"{name}: typed"
        for name in boxes
        if reading.sends(typed[name]) is is_kept_back(form.fields[name])
    ]
    return reading, missing


def list_boxes(field: forms.Field, name: str) -> list[str]:
    """List the names under which a browser sends the value of the field."""
    blanks = ("tool", "param", "comparison", "value", "otherwise")
    return [f"{name}-0-{blank}" for blank in blanks] if isinstance(field, LimitsField) else [name]


def is_tick(field: forms.Field) -> bool:
    return isinstance(field, forms.BooleanField | ConsequencesField | FingerprintsField)


def is_kept_back(field: forms.Field) -> bool:
    """Return True for values that never come back: passwords, files, and invalid names of
    credential fields."""
    is_never_shown = isinstance(field, forms.FileField) or isinstance(
        field.widget, forms.PasswordInput
    )
    return field.disabled or is_never_shown or field.help_text == NAME_HELP


def pages(filled: FilledRows) -> Iterator[tuple[str, FormReading, list[str]]]:
    """Yield each page of each row, by model and kind of page, with the texts that it does not
    show."""
    client = filled.world.client("root")
    # Open one form first, because Unfold's first form changes the labels of all others.
    client.get(address(filled.world.acme, "change"))
    for row in filled.rows:
        model = row._meta.object_name
        response, reading, missing = read(client, address(row, "change"), [str(row)])
        yield (
            f"{model} change",
            reading,
            [*missing, *untold_by_form(row, filled, response, reading)],
        )
        yield (
            f"{model} history",
            *read(client, address(row, "history"), [str(row), *filled.acts])[1:],
        )
        if may(row, "delete"):
            yield f"{model} delete", *read(client, address(row, "delete"), [str(row)])[1:]
        if not all(map(is_tick, response.context["adminform"].form.fields.values())):
            yield f"{model} change refused", *refused(row, filled, client, "change")
        if response.context["has_add_permission"]:
            yield f"{model} add refused", *refused(row, filled, client, "add")


def test_every_registered_model_has_a_row_with_all_strings() -> None:
    assert untold(told_of(all_strings(0), one_line=False), len(max(HOSTILE, key=len))) == []
    assert untold(told_of(all_strings(IN_ALL), one_line=False), IN_ALL) == []
    with transaction.atomic():
        without_limits()
        assert {type(row) for row in make_filled_rows(is_hostile=True).rows} == set(
            admin.site._registry
        )
        transaction.set_rollback(True)


@pytest.mark.timeout(600)
def test_every_page_of_a_row_escapes_hostile_text_and_shows_all_of_it() -> None:
    known: dict[str, set[Shape]] = {}
    usual: set[str] = set()
    with transaction.atomic():
        without_limits()
        for kind, reading, missing in pages(make_filled_rows(is_hostile=False)):
            assert missing == [], kind
            known[kind] = reading.shapes
            usual |= set(reading.faults)
        transaction.set_rollback(True)
    found: dict[str, list[str]] = {}
    with transaction.atomic():
        without_limits()
        for kind, reading, missing in pages(make_filled_rows(is_hostile=True)):
            wrong = {*strange(reading, known.pop(kind)), *reading.faults} - usual
            if wrong or missing:
                found[kind] = [*missing, *sorted(wrong)[:3]]
            if len(found) == ENOUGH:
                break
        transaction.set_rollback(True)
    assert found == {}
    assert known == {}


@pytest.mark.parametrize(("model", "column", "limit"), TITLES)
def test_a_hostile_title_is_escaped_on_the_history_page(
    model: type[Model], column: str, limit: int
) -> None:
    world = make_admin_world()
    world.card()
    row = model._default_manager.get()
    world.users["root"] = User.objects.create_superuser("root")
    client = world.client("root")
    usual = set(FormReading(client.get(address(row, "history")).content.decode()).faults)
    told = []
    for text in packed(limit):
        model._default_manager.update(**{column: text})
        _, reading, missing = read(client, address(row, "history"), [text])
        assert [*missing, *(set(reading.faults) - usual)] == []
        told.append(reading.text)
    assert untold("\n".join(told), limit) == []
