"""Confirmations, messages and refusals show names and texts of other people as plain text, never as
markup."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone
from pytest_django import Settings

from agents.accounts import invitations
from agents.accounts.models import Invitation, Organization
from agents.runs import schedules
from agents.runs.actions import MAX_TEXT
from agents.runs.models import RunStatus
from tests.hostile import EVERY_STRING, packed
from tests.hostile.pages import Reading, strange, tells, untold
from tests.hostile.test_input import assert_tame
from tests.sampling import take_sample
from tests.world import World, make_world
from tools.contract import ToolError
from tools.office.files.changes import write_file
from tools.office.files.paths import parse_file_path
from tools.schedules.models import Schedule

pytestmark = [pytest.mark.django_db, pytest.mark.once]

DAILY = ("0 9 * * *", "UTC")
OF_PEOPLE = packed(150)


@pytest.fixture
def world(settings: Settings, tmp_path: Path) -> World:
    settings.GADGET_FILES_DIR = tmp_path
    return make_world()


def test_confirmations_and_messages_about_a_member_escape_names(world: World) -> None:
    client, viewer = world.client("admin"), world.member("viewer")

    def about(name: str, act: str) -> Any:
        User.objects.filter(pk=viewer.user_id).update(username=name, first_name=name)
        return client.post(f"/users/{viewer.pk}/{act}/", {"role": "admin"}, follow=True)

    for act in ("role", "password"):
        told = assert_tame(lambda name, act=act: about(name, act), OF_PEOPLE)  # type: ignore[misc]
        assert untold(told, 150) == [], act
    assert_tame(
        lambda text: client.post(f"/users/{viewer.pk}/role/", {"role": text, "confirmed": text}),
        packed(200),
    )


def test_messages_about_removed_members_and_withdrawn_invitations_escape_names(
    world: World,
) -> None:
    client, organization = world.client("admin"), world.acme

    def removed(name: str) -> Any:
        user = User.objects.create(username=f"{name}.")
        leaving = user.memberships.create(organization=organization, role="viewer")
        return client.post(f"/users/{leaving.pk}/remove/", follow=True)

    told = assert_tame(removed, packed(149))
    assert untold(told, 149) == []

    def revoked(note: str) -> Any:
        made, _ = invitations.invite(world.member("admin"), invitations.Offer(role="viewer"))
        Invitation.objects.filter(pk=made.pk).update(note=note[:120])
        return client.post(f"/users/invitations/{made.pk}/revoke/", follow=True)

    assert_tame(revoked, packed(120))


def test_the_stop_banner_escapes_the_name_on_every_page(world: World) -> None:
    client = world.client("admin")

    def stopped(name: str) -> Any:
        Organization.objects.filter(pk=world.acme.pk).update(
            stopped_by=name, stopped_at=timezone.now()
        )
        return client.get(path)

    for path in ("/stop/", "/employees/"):
        assert untold(assert_tame(stopped, OF_PEOPLE), 150) == [], path
    Organization.objects.filter(pk=world.acme.pk).update(stopped_by="", stopped_at=None)
    for what in ("tool", "employee", "everything"):
        assert_tame(
            lambda text, what=what: client.post("/stop/", {"what": what, "act": text}),  # type: ignore[misc]
            packed(1_000),
        )
    assert_tame(
        lambda text: client.post("/stop/", {"what": "tool", "act": "stop", "which": text}),
        packed(1_000),
    )


def test_a_refused_schedule_stays_in_its_form_and_a_confirmation_escapes_its_task(
    world: World,
) -> None:
    client, member = world.client("operator"), world.member("operator")
    form = {"employee": str(world.employee.pk), "cron": DAILY[0], "time_zone": DAILY[1]}
    tasks = packed(2_000, "\n")
    for wrong in ("cron", "time_zone"):
        told = assert_tame(
            lambda text, wrong=wrong: client.post(
                "/schedules/new/", {**form, "task": text, wrong: text}
            ),  # type: ignore[misc]
            tasks,
        )
        assert all("".join(text.split()) in told for text in tasks), wrong
    assert_tame(
        lambda text: client.post("/schedules/new/", {**form, "task": text, "look": "1"}), tasks
    )
    made = schedules.create(member, world.employee.pk, "Harmless", DAILY)

    def asked(task: str) -> Any:
        Schedule.objects.filter(pk=made.pk).update(task=task)
        return client.post(f"/schedules/{made.pk}/cancel/")

    told = assert_tame(asked, packed(80))
    assert [text for text in packed(80) if not tells(told, " ".join(text.split()))] == []


def is_name(text: str) -> bool:
    """Return True if a file may have this name."""
    try:
        return parse_file_path(text) == (text,)
    except ToolError:
        return False


def test_file_names_are_escaped_when_refused_listed_and_confirmed(world: World) -> None:
    client = world.client("admin")
    names = take_sample([text for text in EVERY_STRING if is_name(text)], 6, "names of files")

    def uploaded(name: str, folder: str = "") -> Any:
        # Without a name, send no file: the server would ignore a file without a name.
        files = {"files": SimpleUploadedFile(name.replace("/", "") or "x", b"x")} if name else {}
        return client.post("/files/upload/", {**files, "folder": folder}, follow=True)

    assert_tame(lambda text: uploaded("x.txt", text), packed(1_000))
    assert_tame(uploaded, [text for text in packed(400) if "\n" not in text and "\r" not in text])
    usual = Reading(client.get("/files/").content.decode())
    for name in names:
        write_file(world.acme.pk, parse_file_path(name), [b"x"], lambda _: None)
    listed = Reading(client.get("/files/").content.decode())
    assert [*strange(listed, usual.shapes), *listed.faults] == []
    asked = assert_tame(lambda name: client.post(f"/files/delete/{quote(name)}"), ["x.txt", *names])
    assert [name for name in names if not tells(listed.text, name)] == []
    assert [name for name in names if not tells(asked, name)] == []


def test_refused_input_is_returned_escaped(world: World) -> None:
    client, run, card = world.client("operator"), world.run(RunStatus.SUCCEEDED), world.card()
    too_long = "x" * (MAX_TEXT + 1)
    assert_tame(
        lambda text: client.post(f"/runs/{run.pk}/message/", {"text": f"{too_long}{text}"}),
        packed(2_000),
    )
    for act in ("answer", "undo"):
        sent = dict.fromkeys(("choice", "text", "decision_id"), "")
        assert_tame(
            lambda text, act=act, sent=sent: client.post(
                f"/approvals/{card.pk}/{act}/", {**sent, "text": text}
            ),  # type: ignore[misc]
            packed(2_000),
        )
    assert_tame(
        lambda text: client.post("/switch-organization/", {"organization": text}), packed(2_000)
    )
    assert_tame(
        lambda text: world.client("admin").post("/audit/verify/", {"before": text}), packed(2_000)
    )
