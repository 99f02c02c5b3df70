"""Rows of every model in the admin, with all hostile strings in each text, and a parser for forms.

No column limits a text here: the tests are about pages, and one row replaces hundreds of short
ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any, cast

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.apps import apps
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.models import CharField, Field, JSONField, Model, TextField
from django.utils import timezone

from agents.employees.models import Employee, Grant
from agents.platform.encrypted_fields import EncryptedTextField
from agents.runs.engine.context import DELEGATE
from agents.runs.models import CallStatus, Event, ToolCall
from tests.admin.rows import one_of_each
from tests.hostile import HOSTILE, squeezed
from tests.hostile.pages import Reading
from tests.hostile.world import IN_ALL
from tests.world import World, make_world

CLOSED = frozenset({"level", "password", "currency", "lease_owner"})
"""Names of columns whose values are one of a few words, are not on pages, or are written only by
Gadget."""
PRICE = ("input", "output")


def without_limits() -> None:
    """Shadow each PostgreSQL table, until the rollback, with a temporary table whose text columns
    have no length limit.

    SQLite does not enforce lengths.
    """
    if connection.vendor != "postgresql":
        return
    models = [
        model
        for model in apps.get_models(include_auto_created=True)
        if model not in (ContentType, Permission)
    ]
    with connection.cursor() as cursor:
        for model in models:
            table = model._meta.db_table
            cursor.execute(
                f'CREATE TEMPORARY TABLE "{table}" (LIKE public."{table}" INCLUDING ALL EXCLUDING INDEXES)'
            )
            cursor.execute(f'ALTER TABLE "{table}" ADD PRIMARY KEY ("{model._meta.pk.column}")')
            cursor.execute(f'INSERT INTO "{table}" SELECT * FROM public."{table}"')
            for each in model._meta.concrete_fields:
                if isinstance(each, CharField):
                    cursor.execute(f'ALTER TABLE "{table}" ALTER COLUMN "{each.column}" TYPE text')


@cache
def all_strings(longest: int, *, is_hostile: bool = True) -> str:
    """Join all strings, each cut at this length (0: not cut), or return the same amount of harmless
    text."""
    text = "\n".join(dict.fromkeys(text[: longest or None] for text in HOSTILE))
    return text if is_hostile else "".join(char if char in " \n" else "x" for char in text)


def as_breaks(text: str) -> str:
    """Return the text with all kinds of line breaks replaced by one kind."""
    return text.replace("\r", "\n")


def as_json(text: str) -> str:
    """Return the text as a JSON string without its quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


WAYS: tuple[Callable[[str], str], ...] = (str, as_breaks, as_json)


@cache
def _told(
    way: Callable[[str], str], longest: int, *, is_hostile: bool, one_line: bool
) -> tuple[str, str]:
    """Return all strings in this form, and the text that a page must show for them."""
    text = way(all_strings(longest, is_hostile=is_hostile))
    return text, squeezed(text, one_line=one_line, counts_marks=False)


def told_of(text: str, way: Callable[[str], str] = str, *, one_line: bool) -> str:
    """Return the text in this form, as a page must show it; all strings are squeezed only once."""
    text = way(text)
    for longest, is_hostile in product((0, IN_ALL), (True, False)):
        whole, told = _told(way, longest, is_hostile=is_hostile, one_line=one_line)
        before, found, after = text.partition(whole)
        if found:
            start, end = (
                squeezed(part, one_line=one_line, counts_marks=False) for part in (before, after)
            )
            return f"{start}{told}{end}"
    return squeezed(text, one_line=one_line, counts_marks=False)


@dataclass
class FilledRows:
    """The rows, and the text in each of their places.

    Attributes:
        world: the world of the rows; its `root` is a superuser.
        rows: one of each kind.
        texts: the texts by model and field; each text begins and ends with the name of its place.
        acts: the texts of the action that is in the history of every row.
    """

    world: World
    is_hostile: bool
    rows: list[Model] = field(default_factory=list)
    texts: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    acts: list[str] = field(default_factory=list)

    def whole(self, place: str, longest: int = IN_ALL) -> str:
        """Return all strings, or the same amount of harmless text, between two lines that name the
        place."""
        return f"{place} begins\n{all_strings(longest, is_hostile=self.is_hostile)}\n{place} ends"

    def fill(self, row: Model) -> None:
        """Fill each text of the row with all strings, between two lines that name the place."""
        for each in row._meta.concrete_fields:
            place = f"{row._meta.object_name}.{each.name}"
            if each.choices or each.name in CLOSED or isinstance(each, EncryptedTextField):
                continue
            if isinstance(each, JSONField):
                value, texts = self._nested(place, each)
            elif isinstance(each, CharField | TextField):
                value = self.whole(place, 0 if isinstance(each, TextField) else IN_ALL)
                texts = [value]
            else:
                continue
            setattr(row, each.name, value)
            self.texts[row._meta.object_name or "", each.name] = texts

    def _nested(self, place: str, column: Field[Any, Any]) -> tuple[Any, list[str]]:
        """Return a value of the column's type, and its texts."""
        if column.get_default() == []:
            return [self.whole(place)], [self.whole(place)]
        name, inner = self.whole(f"{place} name"), self.whole(f"{place} value")
        if column.name == "prices":
            return {name: dict.fromkeys(PRICE, inner)}, [name, inner]
        return {name: [inner, {name: inner}]}, [name, inner]


def make_filled_rows(*, is_hostile: bool) -> FilledRows:
    """Create one filled row of each kind directly, because no form would accept these texts."""
    filled = FilledRows(make_world(), is_hostile)
    world = filled.world
    rows = [*one_of_each(world), world.member("viewer").user, *_attempts()]
    for row in rows:
        filled.fill(row)
        if isinstance(row, ToolCall):
            # The database accepts a late effect only in a failed call.
            row.status, row.finished_at = (
                CallStatus.FAILED,
                timezone.now(),
            )
        if isinstance(row, Event):  # events cannot be changed in the database
            Event.objects.filter(pk=row.pk).delete()
            row.save(force_insert=True)
        else:
            row.save()
    filled.rows = [type(row)._base_manager.get(pk=row.pk) for row in rows]
    _grant(filled)
    _remember(filled)
    world.users["root"] = User.objects.create_superuser("root")
    return filled


def _attempts() -> list[Model]:
    kept = {
        "username": "x",
        "user_agent": "x",
        "ip_address": "::1",
        "http_accept": "x",
        "path_info": "x",
    }
    more = {"get_data": "x", "post_data": "x", "failures_since_start": 1}
    attempts = AccessAttempt.objects.create(**kept, **more)
    return [attempts, AccessLog.objects.create(**kept), AccessFailureLog.objects.create(**kept)]


def _grant(filled: FilledRows) -> None:
    """Grant an uninstalled tool with a limit, and delegation to a colleague."""
    employee = filled.world.employee
    tool, value, colleague = (
        filled.whole(f"Employee.{place}") for place in ("tool", "limit", "colleague")
    )
    conditions = [{"param": "q", "rule": "one_of", "value": [value], "otherwise": "ask"}]
    other = Employee.objects.create(
        organization=employee.organization, provider=employee.provider, name=colleague
    )
    Grant.objects.create(employee=employee, tool=tool, conditions=conditions)
    Grant.objects.create(employee=employee, tool=DELEGATE, delegates=[other.pk])
    filled.texts |= {
        ("Employee", "allowed_tools"): [tool],
        ("Employee", "limits"): [tool, json.dumps(value, ensure_ascii=False)],
        ("Employee", "delegates"): [colleague],
    }


def _remember(filled: FilledRows) -> None:
    """Add an action to each row's history, by a person with a hostile name."""
    user = filled.world.users["outsider"]
    message = filled.whole("act")
    for name in ("username", "first_name", "last_name"):
        setattr(user, name, filled.whole(f"user {name}"))
    user.save()
    filled.acts = [message, user.username, user.get_full_name()]
    LogEntry.objects.bulk_create(
        LogEntry(
            user=user,
            content_type=ContentType.objects.get_for_model(row),
            object_id=str(row.pk),
            object_repr="x",
            action_flag=CHANGE,
            action_time=timezone.now(),
            change_message=message,
        )
        for row in filled.rows
    )


@dataclass
class FormReading(Reading):
    """A parsed page with a form.

    Attributes:
        values: the raw values that its inputs and text areas would send.
    """

    values: list[str] = field(default_factory=list)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        if tag == "input":
            self.values.append(dict(attrs).get("value") or "")
        elif tag == "textarea":
            self.values.append("")

    def handle_data(self, data: str) -> None:
        super().handle_data(data)
        if self._open and self._open[-1][0] == "textarea":
            self.values[-1] += data

    def tells(self, text: str) -> bool:
        """Return True if the page shows the whole text: on one line, on several lines, or as
        JSON."""
        return any(
            told_of(text, way, one_line=line) in self.text for way in WAYS for line in (False, True)
        )

    def sends(self, text: str) -> bool:
        """Return True if an input or a text area has the whole text unchanged, or as JSON."""
        return any(text in value or as_json(text) in value for value in self.values)


def shown_fields(response: Any) -> list[str]:
    """List the names of the fields in the form of this response, in order."""
    lines = [line for fieldset in response.context["adminform"] for line in fieldset]
    return [
        cast("str", each.field["name"] if each.is_readonly else each.field.name)
        for line in lines
        for each in line
    ]
