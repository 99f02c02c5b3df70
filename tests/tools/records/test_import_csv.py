"""Importing CSV: good rows become records in one transaction, bad ones are named by their line."""

import io

import pytest

from agents.accounts.models import Organization
from tests.tools.records.tenants import make_organization, make_record
from tools.records.csv_import import ImportRefusedError, ImportReport, import_csv
from tools.records.models import Record

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Organization:
    return make_organization()


def imported(text: str | bytes, organization: Organization) -> ImportReport:
    content = text.encode() if isinstance(text, str) else text
    return import_csv(io.BytesIO(content), organization.pk)


def test_good_rows_become_records(acme: Organization) -> None:
    text = '\ufeffName,status,score,attributes\r\n"Acme, Corp",ACTIVE,80,"{""city"": ""Köln""}"\r\nGlobex,,,\r\n'
    assert imported(text, acme) == ImportReport(2, [])
    record = Record.objects.get(name="Acme, Corp")
    assert (record.organization, record.status, record.score) == (acme, "active", 80)
    assert record.attributes == {"city": "Köln"}
    assert record.changes.get().actor == "CSV import"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("Bad,dead,", "status"),
        ("Bad,active,101", "score"),
        ("Bad,active,many", "score"),
        (",active,5", "name"),
        ("Bad,active,5,more", "4 cells"),
        ("B\x00d,active,5", "name"),
        ("x" * 201 + ",active,5", "name"),
        ("x" * 140_000 + ",active,5", "not readable as CSV"),
    ],
)
def test_a_bad_row_is_named_by_its_line_and_left_out(row: str, why: str, acme: Organization) -> None:
    report = imported(f'name,status,score\n"Two\nlines",active,1\n\n{row}\nGood,active,2\n', acme)
    assert report.imported == 2
    ((line, reason),) = report.bad_rows
    assert line == 5
    assert why in reason
    assert len(reason) < 300
    assert set(Record.objects.values_list("name", flat=True)) == {"Two lines", "Good"}


@pytest.mark.parametrize("cell", ["[1]", "{", "nonsense", "[" * 100_000, "1" * 5_000])
def test_attributes_that_are_no_json_object_make_a_bad_row(cell: str, acme: Organization) -> None:
    report = imported(f"name;attributes\nBad;{cell}\nGood;\n", acme)
    assert report.imported == 1
    assert "attributes" in report.bad_rows[0][1]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "empty"),
        (b"name\n", "no rows below"),
        (b"nome,status\nx,active\n", "no column 'name'"),
        (b"name,color\nx,red\n", "'color'"),
        (b"name,name\nx,y\n", "twice"),
        ("name\nGood\nKöln\n".encode("latin-1"), "line 3"),
    ],
)
def test_a_file_that_is_not_understood_imports_nothing(content: bytes, why: str, acme: Organization) -> None:
    with pytest.raises(ImportRefusedError, match=why):
        imported(content, acme)
    assert not Record.objects.exists()


def test_a_file_may_be_imported_twice(acme: Organization) -> None:
    text = "name,domain\nAcme,acme.example\nAcme,other.example\n"
    assert imported(text, acme).imported == 2
    again = imported(text, acme)
    assert again.imported == 0
    assert [line for line, _ in again.bad_rows] == [2, 3]


def test_an_organization_that_is_gone_gets_nothing(acme: Organization) -> None:
    with pytest.raises(ImportRefusedError):
        import_csv(io.BytesIO(b"name\nAcme\n"), acme.pk + 1)


def test_another_organization_may_have_the_same_records(acme: Organization) -> None:
    make_record(make_organization("stranger"), "Acme")
    assert imported("name\nAcme\n", acme).imported == 1
