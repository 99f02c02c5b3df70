"""The stored looks of records' names are recomputed when more look-alike characters
become known."""

# ruff: noqa: RUF001 - the names consist of such characters
from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection

from tests.world import World, make_world
from tools.contract.look_alikes import compute_look
from tools.office.records.models import Record

pytestmark = pytest.mark.django_db
MIGRATION = import_module("tools.office.records.migrations.0002_looks")


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
