"""Input from people is shown as text, even when refused: names, queries, forms and files; exports
contain no formulas."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from agents.accounts import invitations, members
from agents.accounts.models import AuditEntry, Invitation, Organization
from agents.runs.models import RunStatus
from tests.hostile import HOSTILE, UNSTORABLE, hidden_in, packed
from tests.hostile.pages import Reading, strange, tells, untold
from tests.hostile.world import make_hostile_world
from tests.world import World, make_world, nobody
from tools.contract.spreadsheets import FORMULA_STARTS, remove_guard
from tools.office.records.csv_export import HEADER
from tools.office.records.models import Record

pytestmark = [pytest.mark.django_db, pytest.mark.once]

URLENCODED = "application/x-www-form-urlencoded"
SOME_STATUSES = (200, 403, 404, 409, 412, 422)
QUERIES = {
    "/": ("employee", "example"),
    "/employees/": ("q", "after"),
    "/tools/": ("q", "category", "level", "after"),
    "/runs/": ("q", "status", "employee", "before"),
    "/approvals/": ("employee", "tool", "level", "after"),
    "/approvals/?history=1": ("outcome", "by", "employee", "tool", "from", "until", "after"),
    "/records/": ("q", "region", "category", "status", "list", "sort", "after"),
    "/drafts/": ("q", "kind", "employee", "before"),
    "/users/": ("q", "after"),
    "/audit/": ("actor", "action", "from", "to", "before"),
    "/login/": ("next",),
}
Send = Callable[[str], Any]


@pytest.fixture
def world() -> World:
    return make_world()


def urlencoded(values: dict[str, str]) -> str:
    return urlencode({name: text.encode("utf-8", "surrogatepass") for name, text in values.items()})


def masked(text: str) -> str:
    return re.sub(r"[^ \n]", "x", text)


def assert_tame(send: Send, texts: Iterable[str]) -> str:
    """Check that every response has only elements of a harmless page; return the texts of all."""
    texts, told = list(texts), []
    known = set[tuple[str, frozenset[str]]]()
    for text in ("", "A", "1", "x", masked(texts[0]), masked(texts[-1])):
        known |= Reading(send(text).content.decode()).shapes
    for text in texts:
        response = send(text)
        assert response.status_code in SOME_STATUSES, (response.status_code, text[:80])
        reading = Reading(response.content.decode())
        assert [*strange(reading, known), *reading.faults] == [], text[:80]
        told.append(reading.text)
    return "\n".join(told)


# Names chosen by people, and query strings in URLs


def test_names_of_organizations_and_users_are_escaped_on_every_page(world: World) -> None:
    clients, names = {role: world.client(role) for role in ("viewer", "admin")}, packed(120)
    for role, path in (("viewer", "/"), ("admin", "/users/?q=nobody")):

        def shown(name: str, role: str = role, path: str = path) -> Any:
            Organization.objects.filter(pk=world.acme.pk).update(name=name)
            User.objects.filter(pk=world.users[role].pk).update(username=name, first_name=name)
            return clients[role].get(path)

        told = assert_tame(shown, names)
        assert all(tells(told, name) for name in names)
        assert untold(told, 120) == []
        shown(f"The {role}")


@pytest.mark.parametrize("path", QUERIES)
def test_a_hostile_query_is_escaped_on_every_page(world: World, path: str) -> None:
    client = nobody() if path == "/login/" else world.client("admin")
    world.card()

    def asked(text: str) -> Any:
        return client.get(
            path,
            {"history": "1", **dict.fromkeys(QUERIES[path], text)}
            if "?" in path
            else dict.fromkeys(QUERIES[path], text),
        )

    assert_tame(asked, packed(200))
    for text in UNSTORABLE:
        assert (
            client.get(
                path, {name: text.encode("utf-8", "surrogatepass") for name in QUERIES[path]}
            ).status_code
            == 200
        )


def test_an_unknown_address_is_reported_as_escaped_text(world: World) -> None:
    client = world.client("viewer")
    assert_tame(
        lambda text: client.get(f"/nothing/{quote(text, safe='')}/"),
        (text for text in packed(200) if "\n" not in text),
    )


# Forms


def test_a_refused_form_keeps_its_values_escaped(world: World) -> None:
    client, card = world.client("admin"), world.card()

    def edited(text: str) -> Any:
        names = (
            "record_id",
            "changes.phone",
            "changes.notes",
            "changes.score",
            "changes.attributes",
            "changes.status",
        )
        return client.post(
            f"/approvals/{card.pk}/edit/",
            {"digest": card.digest} | {f"param.{name}": text for name in names},
        )

    assert_tame(edited, packed(200))


def test_refused_reasons_and_proofs_are_returned_escaped(world: World) -> None:
    client, card, deletion = world.client("admin"), world.card(), world.destructive_card()
    unknown = world.unknown_call().approvals.get()
    texts = packed(1_900)
    assert_tame(
        lambda text: client.post(f"/approvals/{card.pk}/deny/", {"digest": text, "reason": text}),
        texts,
    )
    assert_tame(
        lambda text: client.post(
            f"/approvals/{card.pk}/approve/", {"digest": text, "decision_id": text}
        ),
        texts,
    )
    approval = {"digest": deletion.digest}
    told = assert_tame(
        lambda text: client.post(
            f"/approvals/{deletion.pk}/approve/", approval | {"confirm": text}
        ),
        texts,
    )
    assert "not" in told
    assert_tame(
        lambda text: client.post(
            f"/approvals/{unknown.pk}/resolve/", {"outcome": text, "reason": text}
        ),
        texts,
    )
    for text in UNSTORABLE:
        for row, act in (
            (card, "deny"),
            (card, "approve"),
            (deletion, "approve"),
            (unknown, "resolve"),
        ):
            sent = {"digest": row.digest, "outcome": "succeeded"} | dict.fromkeys(
                ("reason", "confirm", "decision_id"), text
            )
            refused = client.post(
                f"/approvals/{row.pk}/{act}/", urlencoded(sent), content_type=URLENCODED
            )
            assert refused.status_code in (302, *SOME_STATUSES), (act, text)


def test_a_task_that_cannot_start_stays_in_its_form(world: World) -> None:
    client = world.client("operator")
    texts = (*packed(2_000, "\n"), "<img src=x onerror=window.hacked=1>")
    told = assert_tame(lambda text: client.post("/", {"employee": "none", "task": text}), texts)
    assert "<imgsrc=xonerror=window.hacked=1>" in told
    run = world.run(RunStatus.SUCCEEDED)
    assert_tame(
        lambda text: client.post(f"/runs/{run.pk}/continue/", {"max_passes": f"x{text}"}),
        packed(200),
    )
    for text in UNSTORABLE:
        sent = urlencoded(
            {"employee": str(world.employee.pk), "task": text, "client_request_id": text}
        )
        assert client.post("/", sent, content_type=URLENCODED).status_code in (302, 422)


def test_input_from_strangers_is_returned_escaped(world: World) -> None:
    _, secret = invitations.invite(world.member("admin"), invitations.Offer(role="viewer"))
    guest = nobody()
    guest.get(f"/join/{secret}/")
    passwords = {"password": "short", "again": "short"}
    assert_tame(lambda text: guest.post("/join/", passwords | {"username": text}), packed(140))
    assert_tame(
        lambda text: guest.get(f"/join/{quote(text, safe='')}/", follow=True),
        (text for text in packed(150) if "\n" not in text),
    )
    client = nobody()
    assert_tame(
        lambda text: client.post("/login/", {"username": text, "password": "x", "next": text}),
        packed(1_000),
    )
    admin = world.client("admin")

    def noted(note: str) -> Any:
        Invitation.objects.all().delete()
        return admin.post(
            "/users/invite/", {"role": "viewer", "days": "7", "note": note}, follow=True
        )

    assert_tame(lambda text: noted(f"{text}{'x' * 120}"), packed(200))
    assert_tame(noted, packed(120))


def test_the_new_password_page_escapes_the_account_name(world: World) -> None:
    guest = nobody()
    _, secret = members.create_password_reset(world.member("admin"), world.member("viewer").pk)
    guest.get(f"/new-password/{secret}/")

    def named(name: str, **sent: str) -> Any:
        User.objects.filter(pk=world.users["viewer"].pk).update(
            username=name, first_name=name, email=name
        )
        return guest.post("/new-password/", sent) if sent else guest.get("/new-password/")

    names = packed(150)
    told = assert_tame(named, names)
    refused = assert_tame(lambda name: named(name, password="short", again="short"), names)
    assert all(tells(told, name) and tells(refused, name) for name in names)
    assert_tame(
        lambda text: named("viewer", username=text, password=text, again="another"), packed(1_000)
    )
    assert_tame(
        lambda text: guest.get(f"/new-password/{quote(text, safe='')}/", follow=True),
        (text for text in names if "\n" not in text),
    )


# Files


def uploaded(client: Client, rows: Iterable[dict[str, str]], name: str = "records.csv") -> Any:
    rows = list(rows)
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    sent = {"file": SimpleUploadedFile(name, file.getvalue().encode(), "text/csv")}
    return client.post("/records/import/", sent, follow=True)


def test_the_report_of_bad_rows_escapes_their_text(world: World) -> None:
    client, texts = world.client("admin"), packed(200)

    def sent(text: str) -> Any:
        return uploaded(
            client, [{"name": text, "status": text, "score": text, "attributes": text, text: text}]
        )

    assert_tame(sent, texts)
    assert_tame(lambda text: uploaded(client, [{text: text}]), texts)
    assert_tame(
        lambda text: uploaded(
            client, [{"name": text * 30, "status": "active"}], name=f"{text.replace('/', '')}.csv"
        ),
        texts,
    )


def exported(client: Client) -> str:
    response: Any = client.get("/records/export.csv")

    async def collected() -> list[bytes]:
        return [part async for part in response]

    return b"".join(async_to_sync(collected)()).decode("utf-8-sig")


def test_an_exported_file_contains_every_string_and_no_formula(world: World) -> None:
    Record.objects.bulk_create(
        Record(organization=world.acme, name=f"{n}", notes=text) for n, text in enumerate(HOSTILE)
    )
    rows = {
        row["name"]: row
        for row in csv.DictReader(io.StringIO(exported(world.client("viewer")), newline=""))
    }
    assert tuple(rows["0"]) == HEADER
    for number, text in enumerate(HOSTILE):
        notes = rows[f"{number}"]["notes"]
        assert remove_guard(notes).strip() == text.strip()
        assert not notes.lstrip(" ").startswith(FORMULA_STARTS), text[:80]


def test_exported_records_can_be_imported_unchanged(world: World) -> None:
    texts = [text for text in HOSTILE if text.strip() and len(text) < 10_000]
    response = uploaded(
        world.client("admin"),
        [{"name": f"n{n}", "notes": text} for n, text in enumerate(texts)],
        "\u202e<b>.csv",
    )
    html = response.content.decode()
    assert not Reading(html).faults
    assert f"{len(texts)} records imported" in html
    kept = dict(Record.objects.filter(name__startswith="n").values_list("name", "notes"))
    for number, text in enumerate(texts):
        assert (
            kept[f"n{number}"] == remove_guard(text).strip()
            or kept[f"n{number}"].split() == remove_guard(text).split()
        ), text[:80]
    assert AuditEntry.objects.filter(action="records_imported").exists()


def parts_of(client: Client, path: str) -> str:
    response: Any = client.get(path)
    assert response.status_code == 200

    async def collected() -> list[bytes]:
        return [part async for part in response]

    return b"".join(async_to_sync(collected)() if response.is_async else response).decode()


def test_transcripts_and_exports_hide_no_characters() -> None:
    made = make_hostile_world()
    client = made.world.client("admin")
    told = []
    for run in made.runs:
        text = parts_of(client, f"/runs/{run.pk}/transcript.md")
        assert hidden_in(text) == set()
        told.append("".join(text.split()))
        whole = parts_of(client, f"/runs/{run.pk}/transcript.json")
        assert whole.isascii()
        assert json.loads(whole)["run"]
        playback = client.get(f"/runs/{run.pk}/replay.html").content.decode()
        assert hidden_in(playback) == set()
        assert not Reading(playback.split("<main>")[1].split("</main>")[0]).faults
    assert all(tells("\n".join(told), text) for text in made.words.of(200))
    for draft in made.drafts:
        response = client.get(f"/drafts/{draft.pk}/draft.md")
        assert re.fullmatch(
            r'attachment; filename="[\w.-]+"', response["Content-Disposition"], re.ASCII
        ), draft.title
        assert response["X-Content-Type-Options"] == "nosniff"
    for row in csv.reader(io.StringIO(parts_of(client, "/audit/export/?format=csv"), newline="")):
        assert not any(cell.lstrip(" ").startswith(FORMULA_STARTS) for cell in row), row
