"""`manage.py import_records` creates a record from every valid row and reports each invalid row by
its line."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from agents.accounts.models import Organization
from tools.office.records.models import Record

pytestmark = pytest.mark.django_db

GOOD_AND_BAD = """name,region,status,score
Acme Corp,EU,active,82
,EU,active,10
Globex,US,sleeping,50
Initech,UK,pending,
"""


@pytest.fixture
def acme() -> Organization:
    return Organization.objects.create(name="Acme", slug="acme")


def import_file(path: Path, slug: str = "acme") -> str:
    told = StringIO()
    call_command("import_records", str(path), organization=slug, stdout=told)
    return told.getvalue()


def test_good_rows_are_imported_and_bad_rows_reported(acme: Organization, tmp_path: Path) -> None:
    file = tmp_path / "records.csv"
    file.write_text(GOOD_AND_BAD, encoding="utf-8")
    told = import_file(file)
    assert "line 3:" in told
    assert "line 4:" in told
    assert "2 imported into acme, 2 skipped." in told
    assert set(Record.objects.filter(organization=acme).values_list("name", flat=True)) == {
        "Acme Corp",
        "Initech",
    }


def test_importing_the_same_file_again_duplicates_nothing(
    acme: Organization, tmp_path: Path
) -> None:
    file = tmp_path / "records.csv"
    file.write_text(GOOD_AND_BAD, encoding="utf-8")
    import_file(file)
    assert "0 imported" in import_file(file)
    assert Record.objects.count() == 2


@pytest.mark.parametrize(
    "content", [b"", b"region\nEU\n", b"name,nonsense\nA,b\n", b"name\n\xff\xfe\n"]
)
def test_an_unreadable_file_is_an_error_and_imports_nothing(
    acme: Organization, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "records.csv"
    file.write_bytes(content)
    with pytest.raises(CommandError):
        import_file(file)
    assert not Record.objects.exists()


def test_a_missing_file_and_an_unknown_organization_are_reported(
    acme: Organization, tmp_path: Path
) -> None:
    with pytest.raises(CommandError, match=r"nowhere\.csv"):
        import_file(tmp_path / "nowhere.csv")
    with pytest.raises(CommandError, match="known: acme"):
        import_file(tmp_path / "nowhere.csv", "globex")
