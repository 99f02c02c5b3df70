"""CSV imports: valid rows become records in one transaction, and invalid rows are
reported by line."""

import io

import pytest

from agents.accounts.models import Organization
from tests.features import feature
from tests.tools.office.records.tenants import make_organization, make_record
from tools.office.records.csv_import import import_csv
from tools.office.records.models import Record
from tools.registries.records import ImportRefusedError, ImportReport

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
def test_a_bad_row_is_reported_by_its_line_and_left_out(
    row: str, why: str, acme: Organization
) -> None:
    report = imported(f'name,status,score\n"Two\nlines",active,1\n\n{row}\nGood,active,2\n', acme)
    assert report.imported == 2
    ((line, reason),) = report.bad_rows
    assert line == 5
    assert why in reason
    assert len(reason) < 300
    assert set(Record.objects.values_list("name", flat=True)) == {"Two lines", "Good"}


@pytest.mark.parametrize("cell", ["[1]", "{", "nonsense", "[" * 100_000, "1" * 5_000])
def test_a_row_whose_attributes_are_not_a_json_object_is_bad(cell: str, acme: Organization) -> None:
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
def test_an_unreadable_file_is_not_imported(content: bytes, why: str, acme: Organization) -> None:
    with pytest.raises(ImportRefusedError, match=why):
        imported(content, acme)
    assert not Record.objects.exists()


def test_importing_a_file_again_does_not_add_records_but_reports_every_row(
    acme: Organization,
) -> None:
    text = "name,domain\nAcme,acme.example\nAcme,other.example\n"
    assert imported(text, acme).imported == 2
    again = imported(text, acme)
    assert again.imported == 0
    assert [line for line, _ in again.bad_rows] == [2, 3]


def test_an_import_into_a_missing_organization_is_refused(acme: Organization) -> None:
    with pytest.raises(ImportRefusedError):
        import_csv(io.BytesIO(b"name\nAcme\n"), acme.pk + 1)


def test_another_organization_can_have_the_same_records(acme: Organization) -> None:
    make_record(make_organization("stranger"), "Acme")
    assert imported("name\nAcme\n", acme).imported == 1


@pytest.mark.parametrize(
    "text",
    [
        "name,status,,\nAcme,active,,\nGlobex,active,,\n",
        "name,status\nAcme,active,,,\nGlobex,active\n",
        "name,status,,\nAcme,active\nGlobex,active,\n",
        ",name,,status\n,Acme,,active\n,Globex,,active\n",
        "sep=;\nname;status\nAcme;active\nGlobex;active\n",
        "sep=,\r\nname,status\r\nAcme,active\r\nGlobex,active\r\n",
        '"sep=|"\nname|status\nAcme|active\nGlobex|active\n',
        "SEP=\t\nname\tstatus\nAcme\tactive\nGlobex\tactive\n",
        "name\tstatus\nAcme\tactive\nGlobex\tactive\n",
        "name|status\nAcme|active\nGlobex|active\n",
        '\n\n"name";"status"\n"Acme";active\n"Globex";active\n',
        '"name","status","notes"\nAcme,active,"a; b; c; d; e; f"\nGlobex,active,"a\tb\tc;d"\n',
        'name;notes;status\nAcme;"1,2,3,4,5";active\nGlobex;"1,2,3";active\n',
        "name,status\rAcme,active\rGlobex,active\r",
    ],
)
def test_spreadsheet_formats_are_read(text: str, acme: Organization) -> None:
    assert imported(text, acme) == ImportReport(2, [])
    assert sorted(Record.objects.values_list("name", "status")) == [
        ("Acme", "active"),
        ("Globex", "active"),
    ]


def test_quoted_commas_are_not_taken_for_separators(acme: Organization) -> None:
    text = '"name";"status"\n"Acme, Inc, Co, Ltd";active\n'
    assert imported(text, acme).imported == 1
    with pytest.raises(ImportRefusedError, match="unknown column 'a,b,c'"):
        imported('"name";"a,b,c"\nAcme;x\n', acme)


@feature(
    "Agents elsewhere",
    "An import reads what spreadsheets write; an unclosed quote affects only its own line",
    "tools/office/records/csv_records.py",
)
@pytest.mark.parametrize(
    ("text", "bad_line"),
    [
        ('name,status\n"Acme,active\nGlobex,active\nInitech,active\n', 2),
        ('name,status\n"Acme,active\nGlobex,active\n"Initech",active\n', 2),
        ('name,status\nGlobex,active\n"Acme,active\nInitech,active\n', 3),
        ('name,status\nGlobex,active\nInitech,active\n"Acme,active', 4),
        ('name,status\nGlobex,active\nAcme,"active\nInitech,active\n', 3),
        ('name,status\n"Ac"me,"active\nGlobex,active\nInitech,active\n', 2),
        ('name,status\n"Acme,active\nGlobex,active\nInitech,"active"\n', 2),
    ],
)
def test_an_unclosed_quote_loses_only_its_line(
    text: str, bad_line: int, acme: Organization
) -> None:
    report = imported(text, acme)
    assert [line for line, _ in report.bad_rows] == [bad_line]
    assert "a quote is not closed" in report.bad_rows[0][1]
    assert set(Record.objects.values_list("name", flat=True)) == {"Globex", "Initech"}


@pytest.mark.parametrize(
    "unclosed",
    [
        'Acme,x,"active\nGlobex,12",active\n',
        'Acme,"x,active\nGlobex,12"\n',
        '"Acme,x,active\nGlobex,12"\n',
        'Acme,"x,active\nGlobex,12"\n,active\n',
    ],
)
def test_an_unclosed_quote_closed_by_a_later_line_loses_only_its_line(
    unclosed: str, acme: Organization
) -> None:
    """The line that closes the quote is also reported if it has too few cells."""
    report = imported(f"name,notes,status\nFirst,,\n{unclosed}Initech,y,active\n", acme)
    assert report.bad_rows[0][0] == 3
    assert "a quote is not closed" in report.bad_rows[0][1]
    assert {line for line, _ in report.bad_rows} <= {3, 4, 5}
    assert {"First", "Initech"} <= set(Record.objects.values_list("name", flat=True))
    assert not Record.objects.filter(name__contains="Acme").exists()


def test_a_valid_row_after_an_unclosed_quote_is_imported(acme: Organization) -> None:
    report = imported(
        'name,notes,status\nAcme,"x,active\nGlobex,12,active\nInitech,y"\nHooli,z,active\n', acme
    )
    assert [line for line, _ in report.bad_rows] == [2, 4]
    assert sorted(Record.objects.values_list("name", "notes")) == [("Globex", "12"), ("Hooli", "z")]


def test_a_multiline_cell_in_a_row_without_empty_columns_stays_whole(acme: Organization) -> None:
    """The control: rows may omit the cells of columns that have no name."""
    assert imported('name,notes,,\nAcme,"one\ntwo"\nGlobex,"one\ntwo",,,\n', acme) == ImportReport(
        2, []
    )


def test_a_multiline_cell_stays_whole(acme: Organization) -> None:
    assert imported(
        'name,notes\n"Acme\nInc","one\n""two"", three\n"\nGlobex,x\n', acme
    ) == ImportReport(2, [])
    assert Record.objects.get(name="Acme Inc").notes == 'one\n"two", three'


def test_a_file_full_of_unclosed_quotes_is_refused_quickly(acme: Organization) -> None:
    with pytest.raises(ImportRefusedError, match="more than 100 lines with an unclosed quote"):
        imported("name,status\n" + '"Acme,active\n' * 49_999, acme)


def test_a_value_in_a_column_without_a_name_is_an_error(acme: Organization) -> None:
    report = imported("name,,status\nAcme,stray,active\nGlobex,,active\n", acme)
    assert (report.imported, report.bad_rows) == (1, [(2, "'stray' is in a column without a name")])
