"""The stored looks of records' names are recomputed when more look-alike characters
become known."""

# ruff: noqa: RUF001 - the names consist of look-alike characters
from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection

from tests.world import World, make_world
from tools.contract.look_alikes import compute_look
from tools.contract.name_likeness import NameKeys, compute_keys
from tools.office.records.changes import ChangeAuthor, build_update_target, update_records
from tools.office.records.models import NAME_KEYS, Record

pytestmark = pytest.mark.django_db
MIGRATION = import_module("tools.office.records.migrations.0002_looks")
WITHOUT_ACCENTS = import_module("tools.office.records.migrations.0004_looks_without_accents")


@pytest.fixture
def world() -> World:
    return make_world()


def test_an_outdated_look_is_replaced_and_others_stay(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MIGRATION, "BATCH", 2)
    name = "ᴀᴄᴍᴇ Corp"
    record = Record.objects.create(organization=world.acme, name=name)
    Record.objects.filter(pk=record.pk).update(look="ᴀᴄᴍᴇcorp")
    untouched = dict(Record.objects.exclude(pk=record.pk).values_list("pk", "look"))
    MIGRATION.compute_looks(apps, connection.schema_editor())
    record.refresh_from_db()
    assert record.look == compute_look("Acme Corp") == world.records[0].look
    assert dict(Record.objects.exclude(pk=record.pk).values_list("pk", "look")) == untouched


def test_accents_are_removed_from_recomputed_looks_and_missing_stems_are_added(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WITHOUT_ACCENTS, "BATCH", 2)
    record = Record.objects.create(organization=world.acme, name="Müller GmbH")
    Record.objects.update(stem="")
    Record.objects.filter(pk=record.pk).update(look="mu\u0308llergmbh")
    WITHOUT_ACCENTS.compute_looks(apps, connection.schema_editor())
    record.refresh_from_db()
    assert (record.look, record.stem) == ("mullergmbh", "muller")
    assert Record.objects.get(pk=world.records[0].pk).stem == "acme"


def test_a_renamed_record_has_the_stem_of_its_new_name(world: World) -> None:
    target = build_update_target(world.records[0], {"name": "Müller Ltd"})
    assert target is not None
    update_records(world.acme.pk, [target], ChangeAuthor("test"))
    assert Record.objects.get(pk=world.records[0].pk).stem == "muller"


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 100])
def test_the_database_computes_the_same_keys(world: World, length: int) -> None:
    look = ("абвгdefghi" * 10)[:length]
    Record.objects.filter(pk=world.records[0].pk).update(look=look)
    row = Record.objects.annotate(**{f"key_{name}": key for name, key in NAME_KEYS.items()})
    keys = row.values_list(*(f"key_{name}" for name in NameKeys._fields))
    assert NameKeys(*keys.get(pk=world.records[0].pk)) == compute_keys(look)
