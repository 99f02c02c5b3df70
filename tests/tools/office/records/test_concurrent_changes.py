"""If many changes are approved for the same version of a record, only one of them is made."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from tests.tools.office.records.tenants import make_organization, make_record
from tools.contract import ErrorCode, Target, ToolError
from tools.office.records.changes import ChangeAuthor, update_records
from tools.office.records.models import Record, RecordChange


@pytest.mark.django_db(transaction=True)
def test_one_of_eight_simultaneous_changes_wins() -> None:
    acme = make_organization()
    record = make_record(acme)

    def change(score: int) -> ErrorCode | None:
        target = Target(str(record.pk), record.name, 1, {"score": None}, {"score": score})
        try:
            update_records(acme.pk, [target], ChangeAuthor())
        except ToolError as error:
            return error.code
        else:
            return None
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(change, range(8)))
    assert sorted(outcomes, key=str) == [None] + [ErrorCode.OPERATION_FAILED] * 7
    after = Record.objects.get()
    assert (after.version, after.score) == (2, outcomes.index(None))
    assert RecordChange.objects.count() == 1


@pytest.mark.django_db
def test_deleting_an_organization_deletes_all_of_its_data() -> None:
    acme, stranger = make_organization(), make_organization("stranger")
    make_record(acme)
    kept = make_record(stranger)
    update_records(
        acme.pk, [Target(str(acme.records.get().pk), "x", 1, {}, {"score": 1})], ChangeAuthor()
    )
    acme.delete()
    assert list(Record.objects.all()) == [kept]
    assert not RecordChange.objects.exists()
