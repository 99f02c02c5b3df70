"""Every encrypted value of the database: under which key it is, and the same value under the newest key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import transaction
from django.db.models import Field, Model, TextField, Value
from django.db.models.functions import Cast

from agents.platform.encrypted import EncryptedTextField, is_current, sealed_anew

BATCH = 100
"""Rows of one transaction, so that nobody who works meanwhile waits long."""


@dataclass(frozen=True)
class Place:
    """One encrypted column of one row."""

    model: type[Model]
    column: str
    row_id: int

    def __str__(self) -> str:
        """`the fields of credential 7`, without any value."""
        column = self.column.replace("_", " ")
        return f"the {column} of {self.model._meta.verbose_name} {self.row_id}"


@dataclass(frozen=True)
class Rotation:
    """What became of the values: how many are under the first key now, were there before, and could not be read."""

    renewed: int
    current: int
    unreadable: tuple[Place, ...]


@dataclass(frozen=True)
class Survey:
    """Where values stand that are not under the first key."""

    outdated: tuple[Place, ...]
    unreadable: tuple[Place, ...]


def survey() -> Survey:
    """Look at every encrypted value; nothing is changed."""
    outdated: list[Place] = []
    unreadable: list[Place] = []
    for model, field in _columns():
        for batch in _batches(model, field):
            for row_id, sealed in batch:
                if not is_current(sealed):
                    known = sealed_anew(sealed) is not None
                    (outdated if known else unreadable).append(Place(model, field.name, row_id))
    return Survey(tuple(outdated), tuple(unreadable))


def rotate() -> Rotation:
    """Encrypt every value with the first key that is not so yet, in batches.

    A value that somebody changes meanwhile is left as they stored it. To be repeated until nothing is renewed.
    """
    renewed = current = 0
    unreadable: list[Place] = []
    for model, field in _columns():
        for batch in _batches(model, field):
            with transaction.atomic():
                for row_id, sealed in batch:
                    if is_current(sealed):
                        current += 1
                    elif (fresh := sealed_anew(sealed)) is None:
                        unreadable.append(Place(model, field.name, row_id))
                    else:
                        renewed += _replace(model, field, (row_id, sealed), fresh)
    return Rotation(renewed, current, tuple(unreadable))


def _columns() -> Iterator[tuple[type[Model], Field[Any, Any]]]:
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if isinstance(field, EncryptedTextField):
                yield model, field


def _batches(model: type[Model], field: Field[Any, Any]) -> Iterator[list[tuple[int, str]]]:
    """(id, what is stored) of the rows that have a value, by id."""
    rows = model._default_manager.annotate(sealed=Cast(field.name, TextField())).exclude(sealed="").order_by("pk")
    last = 0
    while batch := list(rows.filter(pk__gt=last).values_list("pk", "sealed")[:BATCH]):
        yield batch
        last = batch[-1][0]


def _replace(model: type[Model], field: Field[Any, Any], found: tuple[int, str], fresh: str) -> int:
    """1, or 0 if the stored value is another one by now."""
    row_id, sealed = found
    same = model._default_manager.annotate(sealed=Cast(field.name, TextField())).filter(pk=row_id, sealed=sealed)
    return same.update(**{field.name: Value(fresh, output_field=TextField())})
