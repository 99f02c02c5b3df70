"""CSV files of records: imports report invalid rows by line, and exports are streamed and contain
no formulas."""

from __future__ import annotations

import csv
import io
import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client

from agents.accounts.models import AuditEntry
from tests.world import World
from tools.contract.spreadsheets import FORMULA_STARTS, guard_cell, remove_guard
from tools.office.records.csv_export import HEADER, ROWS_PER_PART
from tools.office.records.csv_import import import_csv
from tools.office.records.models import Record
from tools.registries.records import ImportRefusedError

pytestmark = pytest.mark.django_db


def read_parts(client: Client, query: str = "") -> list[bytes]:
    """Download the export, and return the parts in which it was sent."""
    response: Any = client.get(f"/records/export.csv{query}")
    assert response.status_code == 200
    assert response.streaming

    async def collected() -> list[bytes]:
        return [part async for part in response]

    return async_to_sync(collected)()


def export(client: Client, query: str = "") -> list[dict[str, str]]:
    text = b"".join(read_parts(client, query)).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def upload(client: Client, text: str | bytes) -> Any:
    """Upload the file and follow the redirect."""
    content = text.encode() if isinstance(text, str) else text
    sent = {"file": SimpleUploadedFile("records.csv", content, "text/csv")}
    return client.post("/records/import/", sent, follow=True)


# Import


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "The file is empty."),
        ("\ufeff \n\n", "The file is empty."),
        ("name,status", "no rows below it"),
        ("name,status\n,\n \n", "no rows below it"),
    ],
)
def test_a_file_without_rows_is_refused_with_a_reason(world: World, text: str, why: str) -> None:
    before = Record.objects.count()
    response = upload(world.client("admin"), text)
    assert response.status_code == 422
    html = response.content.decode()
    assert why in html
    assert "Nothing was imported." in html
    assert Record.objects.count() == before
    assert not AuditEntry.objects.exists()


def test_an_import_reports_invalid_rows_by_line(world: World) -> None:
    text = (
        "name,status,score\nGood One,active,5\nBad One,dead,5\nWorse <b>,active,500\nGood Two,,\n"
    )
    client = world.client("admin")
    response = upload(client, text)
    html = response.content.decode()
    assert response.redirect_chain == [("/records/import/", 302)], (
        "reloading the page does not repeat the import"
    )
    assert 'id="outcome"' in html
    assert 'id="outcome"' not in client.get("/records/import/").content.decode(), (
        "the report is shown once"
    )
    assert "2 records imported" in html
    assert "2 rows were skipped" in html
    assert re.findall(r'<th scope="row" class="number">(\d+)</th>', html) == ["3", "4"]
    made = Record.objects.get(name="Good One")
    assert made.organization == world.acme
    assert made.changes.get().actor == "admin (CSV import)"


def test_an_import_is_in_the_audit(world: World) -> None:
    upload(world.client("admin"), "name\nGood One\n\nAcme Corp\n")
    entry = AuditEntry.objects.get(action="records_imported")
    assert (entry.organization, entry.actor) == (world.acme, "user:admin")
    assert entry.payload == {"file": "records.csv", "imported": 1, "left_out": 1}


@pytest.mark.parametrize("username", ["viewer", "operator", "approver"])
def test_only_admins_can_import(world: World, username: str) -> None:
    client = world.client(username)
    assert upload(client, "name\nMine\n").status_code == 403
    assert client.get("/records/import/").status_code == 403
    assert b"Import CSV" not in client.get("/records/").content
    assert not Record.objects.filter(name="Mine").exists()


@pytest.mark.parametrize(
    ("content", "why"), [(b"nome\nx\n", "no column"), (b"name\n\xff\xfe\n", "not UTF-8")]
)
def test_an_unreadable_file_imports_nothing(world: World, content: bytes, why: str) -> None:
    before = Record.objects.count()
    response = upload(world.client("admin"), content)
    assert response.status_code == 422
    assert why in response.content.decode() or "Choose a CSV file" in response.content.decode()
    assert Record.objects.count() == before
    assert not AuditEntry.objects.filter(action="records_imported").exists()


def test_an_import_without_a_file_is_refused(world: World) -> None:
    response = world.client("admin").post("/records/import/", {"file": "no file"})
    assert response.status_code == 422
    assert "Choose a CSV file." in response.content.decode()


def test_a_form_without_a_csrf_token_imports_nothing(world: World) -> None:
    assert upload(world.client("admin", needs_csrf=True), "name\nMine\n").status_code == 403
    assert not Record.objects.filter(name="Mine").exists()


@pytest.mark.django_db(transaction=True)
def test_a_file_uploaded_several_times_simultaneously_is_imported_once(world: World) -> None:
    rows = "name\n" + "".join(f"Company {number}\n" for number in range(300))

    def import_rows(_: int) -> int:
        try:
            return import_csv(io.BytesIO(rows.encode()), world.acme.pk).imported
        except ImportRefusedError:
            return 0
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(import_rows, range(4))) == [0, 0, 0, 300]
    assert Record.objects.filter(name__startswith="Company").count() == 300


def test_only_the_first_of_many_invalid_rows_are_shown(world: World) -> None:
    html = upload(world.client("admin"), "name,status\n" + "Bad,dead\n" * 1_000).content.decode()
    assert "1000 rows were skipped" in html
    assert html.count('<th scope="row" class="number">') == 200


# Export


def test_an_export_does_not_contain_records_of_another_organization(world: World) -> None:
    assert export(world.client("outsider")) == []


def test_an_export_is_filtered_like_the_list(world: World) -> None:
    Record.objects.filter(pk=world.records[1].pk).update(
        region="UK", score=7, attributes={"a": "ä"}
    )
    client = world.client("viewer")
    assert [row["name"] for row in export(client)] == ["Acme Corp", "Initech", "Umbrella"]
    (row,) = export(client, "?region=UK")
    assert tuple(row) == HEADER
    assert (row["name"], row["score"], json.loads(row["attributes"])) == (
        "Initech",
        "7",
        {"a": "ä"},
    )
    assert row["id"] == str(world.records[1].pk)


def test_an_export_is_never_cached(world: World) -> None:
    response = world.client("viewer").get("/records/export.csv")
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert re.fullmatch(
        r'attachment; filename="records-acme-\d{4}-\d\d-\d\d\.csv"', response["Content-Disposition"]
    )
    assert response["Cache-Control"] == "no-store"


def test_an_export_is_streamed_in_parts(world: World) -> None:
    names = (f"Record {number}" for number in range(2 * ROWS_PER_PART))
    Record.objects.bulk_create(Record(organization=world.acme, name=name) for name in names)
    sizes = [part.count(b"\r\n") for part in read_parts(world.client("viewer"))]
    assert sizes == [1, ROWS_PER_PART, ROWS_PER_PART, 3]


@pytest.mark.parametrize(
    "text",
    [f"{start}1+1" for start in FORMULA_STARTS]
    + ["'=1+1", "''=1", " =1+1", "'Tis", "plain", "=cmd|' /C calc'!A0"],
)
def test_an_export_guards_cells_against_formulas_and_an_import_restores_the_text(text: str) -> None:
    cell = guard_cell(text)
    assert not cell.lstrip(" ").startswith(FORMULA_STARTS)
    assert remove_guard(cell) == text.strip() or text[0] in " \t\r\n"


def test_an_exported_file_can_be_imported_without_changes(world: World) -> None:
    values = {
        "phone": "+49 40 1",
        "notes": '=SUM(A1)\nnext, line; "quoted"',
        "attributes": {"city": "Köln"},
        "score": 0,
    }
    Record.objects.filter(pk=world.records[0].pk).update(**values)
    content = b"".join(read_parts(world.client("viewer")))
    assert b"\"'=SUM(A1)" in content
    assert "3 records imported" in upload(world.client("outsider"), content).content.decode()
    made = Record.objects.get(organization=world.globex, name="Acme Corp")
    assert {name: getattr(made, name) for name in values} == values
