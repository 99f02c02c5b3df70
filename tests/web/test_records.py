"""Records: the list that people filter, sort and page through, and one with its history."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.approvals.models import Approval, ApprovalStatus
from agents.runs.models import RunStatus
from tests.world import World, make_world, nobody
from tools.contract import Target
from tools.records.changes import ChangeAuthor, update_records
from tools.records.lists import PAGE_SIZE, RecordListQuery, filter_records, load_page, parse_sort
from tools.records.models import Draft, ListEntry, Record, RecordChange, RecordList

pytestmark = pytest.mark.django_db

ORDERS = ("name", "-name", "score", "-score", "changed", "-changed")


@pytest.fixture
def world() -> World:
    return make_world()


def text_of(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def names_on(html: str) -> list[str]:
    """The names in the list's rows, from top to bottom."""
    return re.findall(r'<th scope="row">\s*<a href="/records/\d+/">([^<]*)</a>', html)


def many_records(world: World, count: int) -> None:
    """Records of which many are equal in every order."""
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
def test_it_shows_what_was_asked_for_in_the_order_asked_for(world: World, query: str, expected: list[str]) -> None:
    first, second, third = world.records
    Record.objects.filter(pk=first.pk).update(score=0)
    Record.objects.filter(pk=second.pk).update(status="inactive", category="Retail")
    Record.objects.filter(pk=third.pk).update(region="UK", score=90)
    Record.objects.create(organization=world.acme, name="Gone", archived_at=datetime.now(UTC))
    assert names_on(text_of(world.client("viewer"), f"/records/{query}")) == expected


def test_a_list_can_be_chosen_but_not_another_organizations(world: World) -> None:
    mine = RecordList.objects.create(organization=world.acme, name="To call")
    theirs = RecordList.objects.create(organization=world.globex, name="Secret list")
    for record_list in (mine, theirs):
        ListEntry.objects.create(list=record_list, record=world.records[1])
    client = world.client("viewer")
    assert names_on(text_of(client, f"/records/?list={mine.pk}")) == ["Initech"]
    html = text_of(client, f"/records/?list={theirs.pk}")
    assert names_on(html) == []
    assert "Secret list" not in html


@pytest.mark.parametrize("order", ORDERS)
def test_pages_show_each_record_once_whatever_is_equal(world: World, order: str) -> None:
    many_records(world, 60)
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
def test_the_way_to_the_next_page_keeps_filters_and_order(world: World, order: str) -> None:
    many_records(world, PAGE_SIZE + 5)
    client = world.client("viewer")
    html = text_of(client, f"/records/?q=twin&sort={order}")
    found = re.search(r'<a href="(\?[^"]+)" rel="next"', html)
    assert found is not None
    following = text_of(client, "/records/" + found[1].replace("&amp;", "&"))
    assert len(names_on(html)) == PAGE_SIZE
    assert len(names_on(following)) == 5
    assert 'rel="next"' not in following


@pytest.mark.parametrize(
    "after", ["x", "1", "1.", "-5.9", "1.2026-W01-1", "1.9999-99-99 00:00:00", "9" * 40 + ".1", "1.\0", "1.1e400", "."]
)
@pytest.mark.parametrize("order", ORDERS)
def test_a_place_that_is_none_harms_nothing(world: World, order: str, after: str) -> None:
    answer = world.client("viewer").get("/records/", {"sort": order, "after": after})
    assert answer.status_code == 200


def test_it_asks_the_same_number_of_questions_for_many_and_counts_nothing(world: World) -> None:
    client = world.client("viewer")

    def asked() -> list[str]:
        with CaptureQueriesContext(connection) as caught:
            assert client.get("/records/").status_code == 200
        return [query["sql"] for query in caught.captured_queries]

    few = asked()
    many_records(world, 40)
    for number in range(8):
        Record.objects.create(organization=world.acme, name=f"R{number}", region=f"R{number}", category=f"C{number}")
        RecordList.objects.create(organization=world.acme, name=f"List {number}")
    many = asked()
    assert len(many) == len(few) <= 10
    assert not [sql for sql in many if "COUNT(" in sql and "records_record" in sql]


def test_every_order_is_held_by_an_index(world: World) -> None:
    """So that a page deep in a million rows is read like the first one."""
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, Record._meta.db_table)
    assert {"record_name", "record_score", "record_changed"} <= {name for name, one in found.items() if one["index"]}


def test_values_to_filter_by_are_those_in_use_here(world: World) -> None:
    Record.objects.create(organization=world.acme, name="A", region="APAC", category="Retail")
    Record.objects.create(organization=world.globex, name="B", region="Atlantis", category="Spying")
    html = text_of(world.client("viewer"), "/records/")
    assert re.findall(r'<option value="([^"]*)"', html.split('name="region"')[1].split("</select>")[0]) == [
        "",
        "APAC",
        "EU",
    ]
    assert "Atlantis" not in html
    assert "Spying" not in html


def test_values_too_many_to_list_are_typed(world: World) -> None:
    Record.objects.bulk_create(
        Record(organization=world.acme, name=f"N{number}", category=f"C{number:03}") for number in range(210)
    )
    html = text_of(world.client("viewer"), "/records/?category=C205")
    assert 'list="category-values"' in html
    assert names_on(html) == ["N205"]


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
    draft = Draft.objects.create(organization=world.acme, kind="report", title="About Acme", body="x")
    draft.records.add(record)
    html = text_of(world.client("viewer"), f"/records/{record.pk}/")
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


def test_its_history_says_who_changed_what_in_which_run_with_whose_approval(world: World) -> None:
    record, run = world.records[0], world.run(RunStatus.SUCCEEDED)
    card = world.card(run)
    now = datetime.now(UTC)
    Approval.objects.filter(pk=card.pk).update(
        status=ApprovalStatus.CONSUMED, decided_by=world.users["approver"], decided_at=now, consumed_at=now
    )
    by_employee = ChangeAuthor("Dana", str(run.pk), str(card.tool_call_id))
    target = Target(str(record.pk), record.name, 1, {"score": None}, {"score": 9})
    update_records(world.acme.pk, [target], by_employee)
    again = Target(str(record.pk), record.name, 2, {"phone": ""}, {"phone": "+49 1"})
    update_records(world.acme.pk, [again], ChangeAuthor("admin"))
    html = text_of(world.client("viewer"), f"/records/{record.pk}/")
    newest, oldest = re.findall(r'<li class="surface step".*?</li>', html, re.DOTALL)
    assert "admin" in newest
    assert "employee" not in newest.partition("<table")[0].replace("maker person", "")
    for part in ("Dana", "employee", "approved by approver", f'href="/runs/{run.pk}/"', ">9<"):
        assert part in oldest


def test_a_run_of_another_organization_is_never_linked(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED, task="A secret task")
    record = Record.objects.create(organization=world.globex, name="Theirs")
    RecordChange.objects.create(record=record, version=2, run_id=str(run.pk), actor="Hank", after={"score": 1})
    html = text_of(world.client("outsider"), f"/records/{record.pk}/")
    assert f'href="/runs/{run.pk}/"' not in html
    assert "A secret task" not in html


def test_a_long_history_comes_in_pages_with_the_same_number_of_questions(world: World) -> None:
    record, client = world.records[0], world.client("viewer")

    def asked(query: str = "") -> tuple[int, list[str]]:
        with CaptureQueriesContext(connection) as caught:
            html = text_of(client, f"/records/{record.pk}/{query}")
        return len(caught), re.findall(r"when\">version (\d+) ·", html)

    few, _ = asked()
    runs = [world.run(RunStatus.SUCCEEDED) for _ in range(5)]
    for version in range(2, 122):
        values: dict[str, Any] = {"score": version % 100}
        RecordChange.objects.create(
            record=record, version=version, actor="Dana", run_id=str(runs[version % 5].pk), after=values
        )
    many, newest = asked()
    assert many <= few + 1
    assert newest == [str(version) for version in range(121, 71, -1)]
    html = text_of(client, f"/records/{record.pk}/")
    found = re.search(r'href="(\?before=\d+)#history" rel="next"', html)
    assert found is not None
    assert asked(found[1])[1] == [str(version) for version in range(71, 21, -1)]


def test_hidden_and_hostile_text_of_a_record_is_shown_as_text(world: World) -> None:
    evil = "<script>alert(1)</script>\u202e"
    record = Record.objects.create(
        organization=world.acme, name=evil, region=evil[:40], category=evil, notes=evil * 200, attributes={evil: evil}
    )
    RecordChange.objects.create(record=record, version=1, actor=evil, run_id=evil, after={evil: evil * 500})
    RecordList.objects.create(organization=world.acme, name=evil)
    client = world.client("admin")
    for path in ("/records/", f"/records/?q={evil}&region={evil}", f"/records/{record.pk}/"):
        html = text_of(client, path)
        assert "<script>alert" not in html
        assert "\u202e" not in re.sub(r'value="[^"]*"', "", html)
        assert "⟦U+202E⟧" in html


def test_another_organizations_records_are_not_there(world: World) -> None:
    client = world.client("outsider")
    assert client.get(f"/records/{world.records[0].pk}/").status_code == 404
    assert client.get(f"/records/{10**30}/").status_code == 404
    for path in ("/records/", "/records/?q=Acme"):
        assert "Initech" not in text_of(client, path)


@pytest.mark.parametrize("path", ["/records/", "/records/1/", "/records/import/", "/records/export.csv"])
def test_nobody_is_sent_to_the_login(path: str) -> None:
    assert nobody().get(path).status_code == 302
