"""The audit: admins read who did what to which thing, filter it, take it with them, and have the chain verified."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from agents.accounts import audit
from agents.accounts.models import AuditEntry, AuditHead
from agents.approvals import decisions
from agents.web.lists import audit_pages
from agents.web.views import audit as audit_view
from tests.world import World, make_world, streamed

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators"),
]


@pytest.fixture
def world() -> World:
    return make_world()


def note(world: World, *entries: audit.NewEntry) -> None:
    with transaction.atomic():
        audit.append(world.acme.pk, entries)


def entry(
    number: int = 1, actor: str = "user:admin", action: str = "employee_changed", **payload: Any
) -> audit.NewEntry:
    return audit.NewEntry(actor, action, f"employee:{number}", payload)


def text_of(client: Client, query: str = "") -> str:
    answer = client.get(f"/audit/{query}")
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def exported(client: Client, query: str) -> str:
    answer: Any = client.get(f"/audit/export/{query}")
    assert answer.status_code == 200, answer.content
    assert answer.is_async, "only an asynchronous answer is sent while it is read"
    assert answer["Content-Disposition"].startswith('attachment; filename="audit-')
    return streamed(answer)


@pytest.mark.parametrize("username", ["viewer", "operator", "approver"])
@pytest.mark.parametrize("path", ["/audit/", "/audit/export/"])
def test_only_admins_read_it(world: World, username: str, path: str) -> None:
    assert world.client(username).get(path).status_code == 403


def test_it_says_who_did_what_to_which_thing_and_links_it(world: World) -> None:
    card = world.card()
    decisions.deny(world.member("approver"), card.pk, decisions.Decision(digest=card.digest, reason="It is <new>."))
    run, call = card.run, card.tool_call
    note(
        world,
        entry(world.employee.pk),
        audit.NewEntry("user:operator", "run_cancelled", f"run:{run.pk}"),
        audit.NewEntry("employee:Dana", "call_started", f"tool_call:{call.pk}", {"tool": call.tool}),
        audit.NewEntry("user:admin", "membership_changed", "membership:7", {"row": "ada in Acme"}),
        audit.NewEntry("gadget", "something_new", "odd subject"),
    )
    html = text_of(world.client("admin"))
    for part in (
        f'denied a card: <a href="/approvals/{card.pk}/">card {card.pk}: Update record',
        f'<a href="/employees/{world.employee.pk}/">employee Dana</a>',
        f'cancelled a run: <a href="/runs/{run.pk}/">run {run.pk}: Set the phone',
        f'started a call: <a href="/runs/{run.pk}/#call-{call.pk}">data.updateRecord in run {run.pk}</a>',
        "changed a member&#x27;s role: membership 7: ada in Acme",
        "something new: odd subject",
        "It is &lt;new&gt;.",
    ):
        assert part in html


def test_nothing_of_another_organization_is_told(world: World) -> None:
    foreign = world.others_employee.pk
    note(world, entry(foreign), audit.NewEntry("user:admin", "run_cancelled", "run:x"))
    html = text_of(world.client("admin"))
    assert "Hank" not in html
    assert f"/employees/{foreign}/" not in html
    assert "No matching entries" in text_of(world.client("outsider"))


def test_it_is_filtered_by_actor_action_and_dates(world: World) -> None:
    note(world, entry(1), entry(2, actor="employee:Dana", action="call_started"), entry(3, actor="gadget"))
    days = [datetime(2026, 3, day, 23, 59, tzinfo=UTC) for day in (1, 2, 3)]
    for number, at in enumerate(days, 1):
        AuditEntry.objects.filter(seq=number).update(at=at)
    client = world.client("admin")
    for query, numbers in {
        "?actor=admin": [1],
        "?actor=Dana": [2],
        "?actor=gadget": [3],
        "?action=call_started": [2],
        "?from=2026-03-02": [3, 2],
        "?to=2026-03-02": [2, 1],
        "?from=2026-03-02&to=2026-03-02": [2],
        "?from=nonsense&to=9999-12-31&before=x&actor=%00": [3, 2, 1],
    }.items():
        html = text_of(client, query)
        assert [n for n in (3, 2, 1) if f'id="entry-{n}"' in html] == numbers, query


def test_days_find_what_was_written_out_of_turn(world: World) -> None:
    note(world, *(entry(number) for number in range(5)))
    for number, minutes in enumerate((-70, -1, 1, -2, 70), 1):
        at = datetime(2026, 3, 2, tzinfo=UTC) + timedelta(minutes=minutes)
        AuditEntry.objects.filter(seq=number).update(at=at)
    client = world.client("admin")
    for query, numbers in {"?from=2026-03-02": [5, 3], "?to=2026-03-01": [4, 2, 1]}.items():
        for also in ("", "&actor=admin", "&action=employee_changed", "&actor=admin&action=employee_changed"):
            html = text_of(client, query + also)
            assert [n for n in range(5, 0, -1) if f'id="entry-{n}"' in html] == numbers, query + also
        assert len(json.loads(exported(client, f"{query}&format=json"))) == len(numbers)


def test_who_and_what_together_look_through_so_many_and_say_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    note(world, entry(1), *(entry(number, actor="user:operator") for number in range(2, 6)))
    monkeypatch.setattr(audit_pages.load_audit_page, "__defaults__", (2,))
    query, found = "?actor=admin&action=employee_changed", []
    for _ in range(2):
        html = text_of(world.client("admin"), query)
        found += re.findall(r'id="entry-(\d+)"', html)
        following = re.search(r'href="/audit/([^"]+)" rel="next">Search older entries', html)
        assert following is not None
        assert "No match in" in html
        query = following[1].replace("&amp;", "&")
    assert found == []
    html = text_of(world.client("admin"), query)
    assert re.findall(r'id="entry-(\d+)"', html) == ["1"]
    assert "Search older" not in html


@pytest.mark.parametrize("query", ["?actor=approver", "?action=call_started", "?actor=approver&action=call_started"])
def test_a_filtered_list_goes_on_behind_its_cursor(world: World, query: str) -> None:
    started = [entry(number, actor="user:approver", action="call_started") for number in range(60)]
    note(world, *(each for pair in zip(started, [entry()] * 60, strict=True) for each in pair))
    client, found = world.client("admin"), []
    for suffix in ("", "&before=21"):
        html = text_of(client, query + suffix)
        found += [int(number) for number in re.findall(r'id="entry-(\d+)"', html)]
        assert ("before=21" in html) is (suffix == "")
    assert found == list(range(119, 0, -2))


def test_it_goes_on_behind_its_cursor(world: World) -> None:
    note(world, *(entry(number) for number in range(60)))
    client = world.client("admin")
    assert "before=11" in text_of(client, "?action=employee_changed")
    older = text_of(client, "?action=employee_changed&before=11")
    assert 'id="entry-10"' in older
    assert 'id="entry-11"' not in older
    assert "Older entries" not in older


def test_many_entries_cost_no_more_questions(world: World, django_assert_max_num_queries: Any) -> None:
    card = world.card()
    kinds = (f"run:{card.run_id}", f"approval:{card.pk}", f"tool_call:{card.tool_call_id}", "record:1", "employee:1")
    note(world, *(audit.NewEntry("user:admin", "x", kind) for kind in kinds * 10))
    client = world.client("admin")
    text_of(client)
    with django_assert_max_num_queries(12):
        text_of(client)


class TestExport:
    def test_csv_and_json_hold_all_that_fits_oldest_first(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(audit_view, "CHUNK_SIZE", 7)
        note(world, *(entry(number, text="ä\n") for number in range(40)), entry(actor="gadget"))
        client = world.client("admin")
        rows = list(csv.DictReader(io.StringIO(exported(client, "?actor=admin"))))
        assert [int(row["seq"]) for row in rows] == list(range(1, 41))
        whole = json.loads(exported(client, "?format=json"))
        assert len(whole) == 41
        assert whole[0]["payload"] == {"text": "ä\n"}
        assert [row["previous_hash"] for row in whole[1:]] == [row["hash"] for row in whole[:-1]]

    def test_nothing_is_an_empty_list(self, world: World) -> None:
        assert json.loads(exported(world.client("admin"), "?format=json")) == []
        assert exported(world.client("admin"), "").startswith("seq,at,actor")

    def test_its_name_says_how_many_entries_it_holds(self, world: World) -> None:
        note(world, entry(), entry(actor="gadget"))
        client = world.client("admin")
        for query, count in {"": 2, "?actor=gadget&format=json": 1, "?actor=nobody": 0}.items():
            disposition = client.get(f"/audit/export/{query}")["Content-Disposition"]
            assert re.search(rf"-{count}-entries\.(csv|json)", disposition), disposition
        assert "The file name says how many" in text_of(client)

    def test_more_than_one_file_can_hold_is_refused_before_it_starts(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(audit_view, "MAX_EXPORTED", 2)
        note(world, entry(), entry())
        client = world.client("admin")
        assert exported(client, "").count("employee_changed") == 2
        note(world, entry(actor="gadget"))
        refused = client.get("/audit/export/")
        assert refused.status_code == 409
        assert "More than 2 entries match" in refused.content.decode()
        assert exported(client, "?actor=gadget").count("employee_changed") == 1

    @pytest.mark.parametrize("format_", ["csv", "json"])
    def test_hidden_characters_are_written_as_what_they_are(self, world: World, format_: str) -> None:
        note(world, entry(text="a\u202eb"))
        text = exported(world.client("admin"), f"?format={format_}")
        assert "\u202e" not in text
        assert "\\u202e" in text

    def test_no_cell_is_a_formula(self, world: World) -> None:
        note(world, entry(actor="=HYPERLINK(1)"))
        (row,) = csv.DictReader(io.StringIO(exported(world.client("admin"), "")))
        assert row["actor"] == "'=HYPERLINK(1)"

    def test_another_format_is_refused_and_another_organization_gets_its_own(self, world: World) -> None:
        note(world, entry())
        assert world.client("admin").get("/audit/export/?format=xml").status_code == 422
        assert json.loads(exported(world.client("outsider"), "?format=json")) == []


class TestVerification:
    def test_a_chain_that_holds_is_said_to_on_request_only(self, world: World) -> None:
        note(world, entry(), entry(2))
        client = world.client("admin")
        assert "The log is intact" not in text_of(client)
        html = client.post("/audit/verify/").content.decode()
        assert "The log is intact" in html
        assert AuditHead.objects.get(organization=world.acme).hash in html

    def test_a_changed_entry_is_named(self, world: World) -> None:
        note(world, entry(), entry(2), entry(3))
        AuditEntry.objects.filter(organization=world.acme, seq=2).update(actor="user:somebody")
        html = world.client("admin").post("/audit/verify/").content.decode()
        assert "The log is not intact" in html
        assert "entry 2 was changed" in html

    def test_a_long_chain_is_read_a_part_at_a_time(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(audit_view, "MAX_VERIFIED", 3)
        note(world, *(entry(number) for number in range(7)))
        client, read = world.client("admin"), []
        sent: dict[str, str] = {}
        for _ in range(3):
            html = client.post("/audit/verify/", sent).content.decode()
            read += re.findall(r"<b>(.*?)</b>", html)
            sent = dict(re.findall(r'name="(before)" value="(\d+)"', html))
        assert read == [
            "Entries 5 to 7 are intact.",
            "Entries 2 to 4 are intact.",
            "The log is intact up to entry 1.",
        ]
        assert sent == {}

    @pytest.mark.parametrize(("broken", "part"), [(7, 0), (5, 0), (4, 1), (2, 1), (1, 2)])
    @pytest.mark.parametrize("act", ["changed", "removed"])
    def test_a_fault_is_found_by_a_part_that_sees_it(self, world: World, broken: int, part: int, act: str) -> None:
        note(world, *(entry(number) for number in range(7)))
        row = AuditEntry.objects.filter(organization=world.acme, seq=broken)
        row.update(actor="user:somebody") if act == "changed" else row.delete()
        parts = [audit.verify_part(world.acme.pk, 3, before).faults for before in (None, 5, 2)]
        assert [number for number, faults in enumerate(parts) if faults] == [part]
        assert audit.verify(world.acme.pk)

    def test_another_day_is_another_entry(self, world: World) -> None:
        note(world, entry())
        first = AuditEntry.objects.get(organization=world.acme)
        AuditEntry.objects.filter(pk=first.pk).update(at=first.at + timedelta(days=1))
        assert "entry 1 was changed" in world.client("admin").post("/audit/verify/").content.decode()
