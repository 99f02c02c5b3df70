"""Records: the list with its filters, sort orders and pages, and the page of one record with its
history."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.runs.models import Approval, ApprovalStatus, RunStatus
from tests.web.pages import read_page
from tests.world import World, nobody
from tools.contract import Target
from tools.office.records.changes import ChangeAuthor, update_records
from tools.office.records.lists import PAGE_SIZE, filter_records, load_page, parse_sort
from tools.office.records.models import Draft, ListEntry, Record, RecordChange, RecordList
from tools.registries.records import RecordListQuery

pytestmark = pytest.mark.django_db

ORDERS = ("name", "-name", "score", "-score", "changed", "-changed")


def list_names(html: str) -> list[str]:
    """List the names in the rows, from top to bottom."""
    return re.findall(r'<th scope="row">\s*<a href="/records/\d+/">([^<]*)</a>', html)


def create_many_records(world: World, count: int) -> None:
    """Create records; in every order of the list, many of them have equal values."""
    at = datetime(2026, 3, 1, 8, 30, 0, 123_456, tzinfo=UTC)
    Record.objects.bulk_create(
        Record(
            organization=world.acme,
            name=f"Twin {number % 7}",
            score=None if number % 3 else number % 5,
            updated_at=at + timedelta(milliseconds=number % 4),
        )
        for number in range(count)
    )


# The list


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["Acme Corp", "Initech", "Umbrella"]),
        ("?sort=-name", ["Umbrella", "Initech", "Acme Corp"]),
        ("?sort=-score", ["Umbrella", "Acme Corp", "Initech"]),
        ("?sort=score", ["Initech", "Acme Corp", "Umbrella"]),
        ("?q=INIT", ["Initech"]),
        ("?q=corp+acme", ["Acme Corp"]),
        ("?q=nobody", []),
        ("?region=UK", ["Umbrella"]),
        ("?category=Retail", ["Initech"]),
        ("?status=inactive", ["Initech"]),
        ("?status=archived", ["Gone"]),
        ("?region=EU&status=active", ["Acme Corp"]),
        ("?status=nonsense&list=x&sort=color", ["Acme Corp", "Initech", "Umbrella"]),
    ],
)
def test_the_list_is_filtered_and_sorted(world: World, query: str, expected: list[str]) -> None:
    first, second, third = world.records
    Record.objects.filter(pk=first.pk).update(score=0)
    Record.objects.filter(pk=second.pk).update(status="inactive", category="Retail")
    Record.objects.filter(pk=third.pk).update(region="UK", score=90)
    Record.objects.create(organization=world.acme, name="Gone", archived_at=datetime.now(UTC))
    assert list_names(read_page(world.client("viewer"), f"/records/{query}")) == expected


def test_a_list_of_another_organization_cannot_be_chosen(world: World) -> None:
    mine = RecordList.objects.create(organization=world.acme, name="To call")
    theirs = RecordList.objects.create(organization=world.globex, name="Secret list")
    for record_list in (mine, theirs):
        ListEntry.objects.create(list=record_list, record=world.records[1])
    client = world.client("viewer")
    assert list_names(read_page(client, f"/records/?list={mine.pk}")) == ["Initech"]
    html = read_page(client, f"/records/?list={theirs.pk}")
    assert list_names(html) == []
    assert "Secret list" not in html


@pytest.mark.parametrize("order", ORDERS)
def test_pages_show_each_record_once_even_if_many_have_the_same_values(
    world: World, order: str
) -> None:
    create_many_records(world, 60)
    records, sort = filter_records(world.acme.pk, RecordListQuery()), parse_sort(order)
    seen, after = [], ""
    while True:
        shown = load_page(records, sort, after, size=7)
        seen += [record.pk for record in shown.records]
        after = shown.after
        if not after:
            break
    assert len(seen) == len(set(seen)) == 63
    assert seen == [record.pk for record in load_page(records, sort, size=100).records]


@pytest.mark.parametrize("order", ORDERS)
def test_the_link_to_the_next_page_keeps_filters_and_order(world: World, order: str) -> None:
    create_many_records(world, PAGE_SIZE + 5)
    client = world.client("viewer")
    html = read_page(client, f"/records/?q=twin&sort={order}")
    found = re.search(r'<a href="(\?[^"]+)" rel="next"', html)
    assert found is not None
    following = read_page(client, "/records/" + found[1].replace("&amp;", "&"))
    assert len(list_names(html)) == PAGE_SIZE
    assert len(list_names(following)) == 5
    assert 'rel="next"' not in following


@pytest.mark.parametrize(
    "after",
    [
        "x",
        "1",
        "1.",
        "-5.9",
        "1.2026-W01-1",
        "1.9999-99-99 00:00:00",
        "9" * 40 + ".1",
        "1.\0",
        "1.1e400",
        ".",
    ],
)
@pytest.mark.parametrize("order", ORDERS)
def test_an_invalid_cursor_is_ignored(world: World, order: str, after: str) -> None:
    response = world.client("viewer").get("/records/", {"sort": order, "after": after})
    assert response.status_code == 200


def test_the_list_needs_a_constant_number_of_queries_and_does_not_count_records(
    world: World,
) -> None:
    client = world.client("viewer")

    def asked() -> list[str]:
        with CaptureQueriesContext(connection) as caught:
            assert client.get("/records/").status_code == 200
        return [query["sql"] for query in caught.captured_queries]

    few = asked()
    create_many_records(world, 40)
    for number in range(8):
        Record.objects.create(
            organization=world.acme, name=f"R{number}", region=f"R{number}", category=f"C{number}"
        )
        RecordList.objects.create(organization=world.acme, name=f"List {number}")
    many = asked()
    assert len(many) == len(few) <= 10
    assert not [sql for sql in many if "COUNT(" in sql and "records_record" in sql]


def test_every_order_has_an_index(world: World) -> None:
    """With an index, a page deep in a million rows loads as fast as the first."""
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, Record._meta.db_table)
    assert {"record_name", "record_score", "record_changed"} <= {
        name for name, one in found.items() if one["index"]
    }


def test_the_filters_offer_the_values_in_use(world: World) -> None:
    Record.objects.create(organization=world.acme, name="A", region="APAC", category="Retail")
    Record.objects.create(organization=world.globex, name="B", region="Atlantis", category="Spying")
    html = read_page(world.client("viewer"), "/records/")
    assert re.findall(
        r'<option value="([^"]*)"', html.split('name="region"')[1].split("</select>")[0]
    ) == [
        "",
        "APAC",
        "EU",
    ]
    assert "Atlantis" not in html
    assert "Spying" not in html


def test_a_filter_with_too_many_values_becomes_a_text_input(world: World) -> None:
    Record.objects.bulk_create(
        Record(organization=world.acme, name=f"N{number}", category=f"C{number:03}")
        for number in range(210)
    )
    html = read_page(world.client("viewer"), "/records/?category=C205")
    assert 'list="category-values"' in html
    assert list_names(html) == ["N205"]


# One record


def test_a_record_shows_all_fields_lists_and_drafts(world: World) -> None:
    record = world.records[0]
    values = {
        "notes": "Pays late.",
        "email": "a@b.example",
        "attributes": {"city": "Köln"},
        "qualification": "qualified",
    }
    Record.objects.filter(pk=record.pk).update(**values)
    record_list = RecordList.objects.create(organization=world.acme, name="To call")
    ListEntry.objects.create(list=record_list, record=record)
    draft = Draft.objects.create(
        organization=world.acme, kind="report", title="About Acme", body="x"
    )
    draft.records.add(record)
    html = read_page(world.client("viewer"), f"/records/{record.pk}/")
    for part in (
        "Pays late.",
        "a@b.example",
        "city",
        "Köln",
        "qualified",
        "To call",
        f"/records/?list={record_list.pk}",
    ):
        assert part in html
    assert f'<a href="/drafts/{draft.pk}/">About Acme</a>' in html


def test_the_history_names_the_author_run_and_approver_of_each_change(world: World) -> None:
    record, run = world.records[0], world.run(RunStatus.SUCCEEDED)
    card = world.card(run)
    now = datetime.now(UTC)
    Approval.objects.filter(pk=card.pk).update(
        status=ApprovalStatus.CONSUMED,
        decided_by=world.users["approver"],
        decided_at=now,
        consumed_at=now,
    )
    by_employee = ChangeAuthor("Dana", str(run.pk), str(card.tool_call_id))
    target = Target(str(record.pk), record.name, 1, {"score": None}, {"score": 9})
    update_records(world.acme.pk, [target], by_employee)
    again = Target(str(record.pk), record.name, 2, {"phone": ""}, {"phone": "+49 1"})
    update_records(world.acme.pk, [again], ChangeAuthor("admin"))
    html = read_page(world.client("viewer"), f"/records/{record.pk}/")
    newest, oldest = re.findall(r'<li class="surface step".*?</li>', html, re.DOTALL)
    assert "admin" in newest
    assert "employee" not in newest.partition("<table")[0].replace("change-author person", "")
    for part in ("Dana", "employee", "approved by approver", f'href="/runs/{run.pk}/"', ">9<"):
        assert part in oldest


def test_a_run_of_another_organization_is_never_linked(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED, task="A secret task")
    record = Record.objects.create(organization=world.globex, name="Theirs")
    RecordChange.objects.create(
        record=record, version=2, run_id=str(run.pk), actor="Hank", after={"score": 1}
    )
    html = read_page(world.client("outsider"), f"/records/{record.pk}/")
    assert f'href="/runs/{run.pk}/"' not in html
    assert "A secret task" not in html


def test_a_long_history_has_pages_with_a_constant_number_of_queries(world: World) -> None:
    record, client = world.records[0], world.client("viewer")

    def asked(query: str = "") -> tuple[int, list[str]]:
        with CaptureQueriesContext(connection) as caught:
            html = read_page(client, f"/records/{record.pk}/{query}")
        return len(caught), re.findall(r"when\">version (\d+) ·", html)

    few, _ = asked()
    runs = [world.run(RunStatus.SUCCEEDED) for _ in range(5)]
    for version in range(2, 122):
        values: dict[str, Any] = {"score": version % 100}
        RecordChange.objects.create(
            record=record,
            version=version,
            actor="Dana",
            run_id=str(runs[version % 5].pk),
            after=values,
        )
    many, newest = asked()
    assert many <= few + 1
    assert newest == [str(version) for version in range(121, 71, -1)]
    html = read_page(client, f"/records/{record.pk}/")
    found = re.search(r'href="(\?before=\d+)#history" rel="next"', html)
    assert found is not None
    assert asked(found[1])[1] == [str(version) for version in range(71, 21, -1)]


def test_hidden_and_hostile_text_of_a_record_is_shown_as_text(world: World) -> None:
    evil = "<script>alert(1)</script>\u202e"
    record = Record.objects.create(
        organization=world.acme,
        name=evil,
        region=evil[:40],
        category=evil,
        notes=evil * 200,
        attributes={evil: evil},
    )
    RecordChange.objects.create(
        record=record, version=1, actor=evil, run_id=evil, after={evil: evil * 500}
    )
    RecordList.objects.create(organization=world.acme, name=evil)
    client = world.client("admin")
    for path in ("/records/", f"/records/?q={evil}&region={evil}", f"/records/{record.pk}/"):
        html = read_page(client, path)
        assert "<script>alert" not in html
        assert "\u202e" not in re.sub(r'value="[^"]*"', "", html)
        assert "⟦U+202E⟧" in html


def test_records_of_another_organization_return_404(world: World) -> None:
    client = world.client("outsider")
    assert client.get(f"/records/{world.records[0].pk}/").status_code == 404
    assert client.get(f"/records/{10**30}/").status_code == 404
    for path in ("/records/", "/records/?q=Acme"):
        assert "Initech" not in read_page(client, path)


@pytest.mark.parametrize(
    "path", ["/records/", "/records/1/", "/records/import/", "/records/export.csv"]
)
def test_logged_out_people_are_redirected_to_the_login(path: str) -> None:
    assert nobody().get(path).status_code == 302
