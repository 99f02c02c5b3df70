"""Rotate encryption keys: find every encrypted value in the database, and encrypt it with the first
of the configured keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import transaction
from django.db.models import Field, Model, TextField, Value
from django.db.models.functions import Cast

from agents.platform.encrypted_fields import EncryptedTextField, has_current_key, reencrypt

BATCH = 100
"""The number of rows in one transaction. It is small, so that nobody waits long for the rows'
locks."""


@dataclass(frozen=True)
class EncryptedValue:
    """One encrypted column of one row."""

    model: type[Model]
    column: str
    row_id: int

    def __str__(self) -> str:
        """Return a text that names the row and column, but never the value: `the fields of
        credential 7`."""
        column = self.column.replace("_", " ")
        return f"the {column} of {self.model._meta.verbose_name} {self.row_id}"


@dataclass(frozen=True)
class RotationReport:
    """The result of a rotation.

    Attributes:
        renewed: the number of values that this rotation encrypted with the first key.
        current: the number of values that were already encrypted with the first key.
        unreadable: the values that no key can decrypt.
    """

    renewed: int
    current: int
    unreadable: tuple[EncryptedValue, ...]


@dataclass(frozen=True)
class KeySurvey:
    """The values that are not encrypted with the first key; the values in `unreadable` cannot be
    decrypted with any key."""

    outdated: tuple[EncryptedValue, ...]
    unreadable: tuple[EncryptedValue, ...]


def survey_keys() -> KeySurvey:
    """Find the values that are not encrypted with the first key, without changing them."""
    outdated: list[EncryptedValue] = []
    unreadable: list[EncryptedValue] = []
    for model, field in _find_columns():
        for batch in _read_batches(model, field):
            for row_id, ciphertext in batch:
                if not has_current_key(ciphertext):
                    is_readable = reencrypt(ciphertext) is not None
                    (outdated if is_readable else unreadable).append(
                        EncryptedValue(model, field.name, row_id)
                    )
    return KeySurvey(tuple(outdated), tuple(unreadable))


def rotate_keys() -> RotationReport:
    """Re-encrypt, in batches and with the first key, all values that were encrypted with an older
    key.

    A value that somebody changes at the same time is skipped, so repeat this until no value is
    re-encrypted.
    """
    renewed = current = 0
    unreadable: list[EncryptedValue] = []
    for model, field in _find_columns():
        for batch in _read_batches(model, field):
            with transaction.atomic():
                for row_id, ciphertext in batch:
                    if has_current_key(ciphertext):
                        current += 1
                    elif (renewed_text := reencrypt(ciphertext)) is None:
                        unreadable.append(EncryptedValue(model, field.name, row_id))
                    else:
                        renewed += _replace(model, field, (row_id, ciphertext), renewed_text)
    return RotationReport(renewed, current, tuple(unreadable))


def _find_columns() -> Iterator[tuple[type[Model], Field[Any, Any]]]:
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if isinstance(field, EncryptedTextField):
                yield model, field


def _read_batches(model: type[Model], field: Field[Any, Any]) -> Iterator[list[tuple[int, str]]]:
    """Yield batches of (id, ciphertext) pairs, for the rows that have a value, in the order of
    their ids."""
    rows = (
        model._default_manager.annotate(ciphertext=Cast(field.name, TextField()))
        .exclude(ciphertext="")
        .order_by("pk")
    )
    last = 0
    while batch := list(rows.filter(pk__gt=last).values_list("pk", "ciphertext")[:BATCH]):
        yield batch
        last = batch[-1][0]


def _replace(
    model: type[Model], field: Field[Any, Any], row: tuple[int, str], replacement: str
) -> int:
    """Replace the ciphertext. Return 1, or 0 if somebody has changed the row since it was read."""
    row_id, ciphertext = row
    unchanged = model._default_manager.annotate(ciphertext=Cast(field.name, TextField())).filter(
        pk=row_id, ciphertext=ciphertext
    )
    return unchanged.update(**{field.name: Value(replacement, output_field=TextField())})
