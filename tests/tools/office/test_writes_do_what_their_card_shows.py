"""Data tools above the draft level change exactly what their previews show, in their own
organization only."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.accounts.models import Organization
from tests.features import feature
from tests.tools.office.cards import approve, card, context_of, sealed
from tests.tools.office.records.tenants import (
    differences,
    everything,
    make_organization,
    make_record,
)
from tools.contract import ErrorCode, Tool, ToolError
from tools.office.records.models import ListEntry, Record, RecordChange, RecordList
from tools.office.tools.data_bulk import ArchiveAll, BulkDelete, BulkUpdate
from tools.office.tools.data_write import AddToList, CreateRecord, QualifyRecord, UpdateRecord

pytestmark = pytest.mark.django_db

WRITES: list[type[Tool]] = [
    CreateRecord,
    UpdateRecord,
    QualifyRecord,
    AddToList,
    BulkUpdate,
    BulkDelete,
    ArchiveAll,
]
CHANGES: list[tuple[type[Tool], dict[str, Any]]] = [
    (
        UpdateRecord,
        {
            "record_id": "{0}",
            "changes": {"status": "inactive", "score": 7, "notes": "", "name": "Acme"},
        },
    ),
    (
        UpdateRecord,
        {
            "record_id": "{0}",
            "changes": {"attributes": {"city": "Lyon", "employees": None, "new": [1]}},
        },
    ),
    (
        QualifyRecord,
        {"record_id": "{0}", "qualification": "qualified", "reason": "It buys.", "score": 90},
    ),
    (BulkUpdate, {"record_ids": ["{1}", "{0}"], "changes": {"region": "EU", "status": "pending"}}),
    (BulkUpdate, {"filters": {"region": "eu"}, "changes": {"status": "inactive", "score": 0}}),
    (ArchiveAll, {"filters": {"status": "active"}}),
]
ON_MANY: list[tuple[type[Tool], dict[str, Any]]] = [
    (BulkUpdate, {"changes": {"status": "inactive"}}),
    (ArchiveAll, {}),
    (BulkDelete, {}),
    (AddToList, {"list_name": "Spring"}),
]


@pytest.fixture
def acme() -> Organization:
    organization = make_organization()
    attributes = {"city": "Hamburg", "employees": 40}
    make_record(
        organization, "Acme Corp", region="EU", score=50, notes="old", attributes=attributes
    )
    make_record(organization, "Globex", region="US", email="a@globex.example")
    make_record(organization, "Initech", region="EU", status="inactive", score=0)
    stranger = make_organization("stranger")
    make_record(stranger, "Hidden", region="EU")
    return organization


def ids(organization: Organization) -> list[str]:
    return [
        str(pk)
        for pk in Record.objects.filter(organization=organization)
        .order_by("pk")
        .values_list("pk", flat=True)
    ]


def filled(params: Any, known: list[str]) -> Any:
    """Return the params with {0}, {1} replaced by ids."""
    if isinstance(params, dict):
        return {key: filled(value, known) for key, value in params.items()}
    if isinstance(params, list):
        return [filled(value, known) for value in params]
    return params.format(*known) if isinstance(params, str) else params


@feature(
    "Built-in tools",
    "`data.createRecord`, `updateRecord`, `qualifyRecord`, `addToList`",
    "tools/office/tools/data_write.py",
    whole_file=True,
)
@feature(
    "Built-in tools",
    "`data.bulkUpdate`, `bulkDelete`, `archiveAll`",
    "tools/office/tools/data_bulk.py",
    whole_file=True,
)
@pytest.mark.parametrize(("tool", "params"), CHANGES)
@pytest.mark.parametrize("with_card", [True, False])
def test_an_approved_call_makes_exactly_the_change_on_its_card(
    tool: type[Tool], params: dict[str, Any], with_card: bool, acme: Organization
) -> None:
    wanted = filled(params, ids(acme))
    before = everything()
    _, preview = card(tool(), wanted, acme)
    assert everything() == before
    result = approve(tool(), wanted, acme, sealed(preview) if with_card else None)
    assert result.success
    shown = {target.id: (target.before, target.after) for target in preview.targets}
    assert differences(before, everything()) == shown


@pytest.mark.parametrize(("tool", "params"), CHANGES)
def test_each_change_increases_the_version_and_extends_the_history(
    tool: type[Tool], params: dict[str, Any], acme: Organization
) -> None:
    wanted = filled(params, ids(acme))
    _, preview = card(tool(), wanted, acme)
    approve(tool(), wanted, acme, sealed(preview))
    steps = {str(step.record_id): step for step in RecordChange.objects.all()}
    assert set(steps) == {target.id for target in preview.targets}
    for target in preview.targets:
        step = steps[target.id]
        assert (step.before, step.after, step.version) == (target.before, target.after, 2)
        assert (step.actor, step.run_id, step.call_id) == ("Dana", "7", "70")
        assert Record.objects.get(pk=target.id).version == 2


def test_a_creation_creates_only_the_record_on_the_card(acme: Organization) -> None:
    before = everything()
    params = {
        "name": " Nova \n Labs ",
        "region": "US",
        "score": 0,
        "attributes": {"x": 1},
        "email": "",
    }
    sentence, preview = card(CreateRecord(), params, acme)
    assert sentence.startswith("Create record **Nova Labs**: region “US”")
    result = approve(CreateRecord(), params, acme, sealed(preview))
    ((new_id, (_, after)),) = differences(before, everything()).items()
    assert result.data["record"]["id"] == new_id
    shown = {**preview.targets[0].after, "attributes.x": 1}
    assert shown.pop("attributes") == {"x": 1}
    assert {
        key: value for key, value in after.items() if value not in ("", None) and key != "archived"
    } == shown
    made = Record.objects.get(pk=new_id)
    assert made.organization == acme
    assert made.changes.get().after == preview.targets[0].after


def test_a_bulk_deletion_deletes_only_what_the_card_names(acme: Organization) -> None:
    before = everything()
    sentence, preview = card(BulkDelete(), {"filters": {"region": "EU"}}, acme)
    assert sentence == "Permanently delete 2 records (region “EU”)"
    assert not preview.reversible
    result = approve(BulkDelete(), {"filters": {"region": "EU"}}, acme, sealed(preview))
    assert set(differences(before, everything())) == {target.id for target in preview.targets}
    assert result.data == {"deleted": 2, "record_ids": [target.id for target in preview.targets]}


def test_a_list_gets_only_records_that_it_does_not_contain_yet(acme: Organization) -> None:
    first, second, _ = ids(acme)
    approve(AddToList(), {"record_ids": [first], "list_name": "Spring"}, acme, None)
    sentence, preview = card(
        AddToList(), {"record_ids": [first, second], "list_name": "Spring"}, acme
    )
    assert sentence == "Add record **Globex** to the list **Spring**"
    result = approve(
        AddToList(), {"record_ids": [first, second], "list_name": "Spring"}, acme, sealed(preview)
    )
    assert result.data["added"] == [second]
    assert result.data["list"]["records"] == 2
    assert RecordList.objects.get().organization == acme
    with pytest.raises(ToolError) as caught:
        card(AddToList(), {"record_ids": [first], "list_name": "Spring"}, acme)
    assert caught.value.code is ErrorCode.NOTHING_TO_DO


def test_another_organizations_list_of_the_same_name_is_not_affected(acme: Organization) -> None:
    stranger = make_organization("third")
    theirs = RecordList.objects.create(organization=stranger, name="Spring")
    sentence, _ = card(AddToList(), {"record_ids": ids(acme), "list_name": "Spring"}, acme)
    assert "new list" in sentence
    approve(AddToList(), {"record_ids": ids(acme), "list_name": "Spring"}, acme, None)
    assert not ListEntry.objects.filter(list=theirs).exists()


def test_a_result_describes_the_current_record(acme: Organization) -> None:
    first = ids(acme)[0]
    updated = approve(
        UpdateRecord(), {"record_id": first, "changes": {"score": 9, "notes": "new"}}, acme, None
    )
    assert updated.data["changed"] == {"score": 9, "notes": "new"}
    assert (updated.data["record"]["score"], updated.data["record"]["version"]) == (9, 2)
    judged = {"record_id": first, "qualification": "qualified", "reason": "It buys."}
    record = approve(QualifyRecord(), judged, acme, None).data["record"]
    assert (record["qualification"], record["qualification_reason"]) == ("qualified", "It buys.")


@pytest.mark.parametrize("tool", WRITES)
def test_every_write_runs_in_the_engines_transaction(tool: type[Tool]) -> None:
    assert tool.transactional
    assert tool.level.has_side_effects


@pytest.mark.parametrize(
    ("tool", "params"),
    [
        (UpdateRecord, {"record_id": "{0}", "changes": {"status": "inactive"}}),
        (QualifyRecord, {"record_id": "{0}", "qualification": "qualified", "reason": "x"}),
        *((tool, {"record_ids": ["{0}"], **params}) for tool, params in ON_MANY),
    ],
)
@pytest.mark.parametrize("foreign", [True, False])
def test_an_id_of_another_organization_is_reported_like_an_unknown_one(
    tool: type[Tool], params: dict[str, Any], foreign: bool, acme: Organization
) -> None:
    unknown = str(Record.objects.get(name="Hidden").pk) if foreign else "999999999999999999"
    before = everything()
    with pytest.raises(ToolError) as caught:
        card(tool(), filled(params, [unknown]), acme)
    assert caught.value.code is ErrorCode.NOT_FOUND
    assert not caught.value.attempted
    assert unknown in caught.value.message
    with pytest.raises(ToolError):
        approve(tool(), filled(params, [unknown]), acme, None)
    assert everything() == before


@pytest.mark.parametrize(
    ("tool", "params"), [*ON_MANY[:3], (UpdateRecord, {"changes": {"status": "inactive"}})]
)
def test_a_target_that_changed_after_the_card_stays_unchanged(
    tool: type[Tool], params: dict[str, Any], acme: Organization
) -> None:
    first = ids(acme)[0]
    choice = {"record_id": first} if tool is UpdateRecord else {"record_ids": ids(acme)[:2]}
    loaded = tool().load_params(tool().check_params({**choice, **params}))
    _, preview = card(tool(), {**choice, **params}, acme)
    approve(UpdateRecord(), {"record_id": first, "changes": {"phone": "1"}}, acme, None)
    before = everything()
    with pytest.raises(ToolError) as caught:
        tool().execute(loaded, context_of(acme, preview=sealed(preview)))
    assert caught.value.code is ErrorCode.OPERATION_FAILED
    assert caught.value.is_definite
    assert everything() == before


@pytest.mark.parametrize(
    ("tool", "params"),
    [
        (UpdateRecord, {"record_id": "{2}", "changes": {"status": "inactive", "score": 0}}),
        (BulkUpdate, {"record_ids": ["{2}"], "changes": {"region": "EU"}}),
    ],
)
def test_a_write_without_an_effect_is_refused(
    tool: type[Tool], params: dict[str, Any], acme: Organization
) -> None:
    with pytest.raises(ToolError) as caught:
        card(tool(), filled(params, ids(acme)), acme)
    assert caught.value.code is ErrorCode.NOTHING_TO_DO
    assert not caught.value.attempted


def test_an_update_restores_an_archived_record(acme: Organization) -> None:
    first = ids(acme)[0]
    approve(ArchiveAll(), {"record_ids": [first]}, acme, None)
    with pytest.raises(ToolError, match="already"):
        card(ArchiveAll(), {"record_ids": [first]}, acme)
    approve(UpdateRecord(), {"record_id": first, "changes": {"archived": False}}, acme, None)
    assert Record.objects.get(pk=first).archived_at is None


@pytest.mark.parametrize(("tool", "params"), ON_MANY)
def test_more_than_a_thousand_targets_are_refused_with_their_count(
    tool: type[Tool], params: dict[str, Any], acme: Organization
) -> None:
    Record.objects.bulk_create(
        Record(organization=acme, name=f"n{i}", category="Many") for i in range(1001)
    )
    with pytest.raises(ToolError) as caught:
        card(tool(), {"filters": {"category": "many"}, **params}, acme)
    assert caught.value.code is ErrorCode.LIMIT_EXCEEDED
    assert "1,001" in caught.value.message


@pytest.mark.parametrize(("tool", "params"), ON_MANY)
def test_a_thousand_targets_cost_at_most_thirty_queries(
    tool: type[Tool], params: dict[str, Any], acme: Organization
) -> None:
    Record.objects.bulk_create(
        Record(organization=acme, name=f"n{i}", category="Many") for i in range(1000)
    )
    wanted = {"filters": {"category": "Many"}, **params}
    _, preview = card(tool(), wanted, acme)
    with CaptureQueriesContext(connection) as queries:
        result = approve(tool(), wanted, acme, sealed(preview))
    assert result.success
    assert len(queries) <= 30, [query["sql"][:80] for query in queries]


@pytest.mark.parametrize(("tool", "params"), ON_MANY)
@pytest.mark.parametrize(
    "choice", [{}, {"filters": {}}, {"record_ids": []}, {"filters": {"text": " "}}]
)
def test_an_empty_selection_never_means_all_records(
    tool: type[Tool], params: dict[str, Any], choice: dict[str, Any]
) -> None:
    with pytest.raises(ToolError) as caught:
        tool().check_params({**choice, **params})
    assert caught.value.code is ErrorCode.MISSING_PARAMETER


def test_ids_and_filters_together_are_refused() -> None:
    with pytest.raises(ToolError) as caught:
        BulkDelete().check_params({"record_ids": ["1"], "filters": {"region": "EU"}})
    assert caught.value.code is ErrorCode.INVALID_PARAMETER
