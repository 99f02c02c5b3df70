"""A file is written or deleted as the card shows; if the file has changed since then, the call
needs a new approval."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest
from pytest_django import Settings

from agents.employees.models import Grant
from agents.runs.models import CallStatus, Run, RunStatus
from tests.workshop import (
    Workshop,
    asking,
    call,
    calls,
    error_code,
    eventually,
    status_is,
    statuses,
)

pytestmark = pytest.mark.django_db(transaction=True)

WRITE = call("files.write", path="notes/a.txt", text="new")
DELETE = call("files.delete", path="notes")


@pytest.fixture
def note(workshop: Workshop, settings: Settings, tmp_path: Path) -> Path:
    """A file of an organization whose employee may write and delete files."""
    settings.GADGET_FILES_DIR = tmp_path
    for tool in ("files.write", "files.delete"):
        Grant.objects.create(employee=workshop.employee, tool=tool)
    place = tmp_path / str(workshop.organization.pk) / "notes"
    place.mkdir(parents=True)
    (place / "a.txt").write_text("old")
    return place / "a.txt"


def approve_call(workshop: Workshop, asked: dict[str, object]) -> Run:
    workshop.play(asking(asked))
    run = workshop.work()
    workshop.approve(workshop.card(run))
    return run


def test_an_approved_write_does_what_its_card_shows(workshop: Workshop, note: Path) -> None:
    workshop.play(asking(WRITE))
    run = workshop.work()
    card = workshop.card(run)
    assert card.sentence == "Replace file **notes/a.txt** with 1 line of text (3 bytes)"
    (target,) = card.preview["targets"]
    assert (target["before"], target["after"]) == ({"content": "old"}, {"content": "new"})
    assert note.read_text() == "old"
    workshop.approve(card)
    assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED]
    assert note.read_text() == "new"


def test_a_call_needs_a_new_approval_if_its_file_changed_after_the_approval(
    workshop: Workshop, note: Path
) -> None:
    run = approve_call(workshop, WRITE)
    note.write_text("somebody else's")
    run = workshop.drive(run)
    assert (run.status, statuses(run)) == (RunStatus.WAITING, [CallStatus.AWAITING_APPROVAL])
    new_card = workshop.card(run)
    assert new_card.preview["targets"][0]["before"] == {"content": "somebody else's"}
    assert note.read_text() == "somebody else's"
    workshop.approve(new_card)
    assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED]
    assert note.read_text() == "new"


@pytest.mark.parametrize("asked", [WRITE, DELETE], ids=["write", "delete"])
def test_a_file_that_changes_at_the_last_moment_is_neither_overwritten_nor_deleted(
    workshop: Workshop, note: Path, asked: dict[str, object]
) -> None:
    run = approve_call(workshop, asked)
    (row,) = calls(run)
    folder = os.open(note.parent.parent, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with workshop.driving(run):
        eventually(lambda: status_is(row, CallStatus.EXECUTING))
        note.write_text("somebody else's")
        os.close(folder)
    (row,) = calls(run)
    assert (row.status, error_code(row), row.attempts) == (CallStatus.FAILED, "OPERATION_FAILED", 1)
    assert note.read_text() == "somebody else's"


def test_a_deletion_lists_its_files_and_needs_a_new_card_if_files_were_added(
    workshop: Workshop, note: Path
) -> None:
    run = approve_call(workshop, DELETE)
    note.with_name("b.txt").write_text("new")
    run = workshop.drive(run)
    card = workshop.card(run)
    assert [target["label"] for target in card.preview["targets"]] == ["notes/a.txt", "notes/b.txt"]
    workshop.approve(card)
    assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED]
    assert not note.parent.exists()
