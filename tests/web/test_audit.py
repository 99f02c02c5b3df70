"""The audit: admins read, filter and export its entries, and verify the chain."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from django.test import Client

from agents.accounts import audit
from agents.accounts.models import AuditEntry, AuditHead
from agents.approvals import decisions
from agents.web.lists import audit_pages
from agents.web.lists.audit_lines import ACTION_TEXTS
from agents.web.panel.slots import build_line_url
from agents.web.views import audit as audit_view
from tests.audit_chain import verify_audit
from tests.world import World, streamed

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators"),
]


RECORDING = ("audit", "_audit", "record", "_record", "record_change", "NewEntry")
"""The names of the functions that take an action's name as an argument."""


def append_entries(world: World, *entries: audit.NewEntry) -> None:
    with transaction.atomic():
        audit.append(world.acme.pk, entries)


def entry(
    number: int = 1, actor: str = "user:admin", action: str = "employee_changed", **payload: Any
) -> audit.NewEntry:
    return audit.NewEntry(actor, action, f"employee:{number}", payload)


def read_page(client: Client, query: str = "") -> str:
    response = client.get(f"/audit/{query}")
    assert response.status_code == 200, response.content
    return response.content.decode()


def export(client: Client, query: str) -> str:
    response: Any = client.get(f"/audit/export/{query}")
    assert response.status_code == 200, response.content
    assert response.is_async, "only an asynchronous response is streamed"
    assert response["Content-Disposition"].startswith('attachment; filename="audit-')
    return streamed(response)


@pytest.mark.parametrize("username", ["viewer", "operator", "approver"])
@pytest.mark.parametrize("path", ["/audit/", "/audit/export/"])
def test_only_admins_can_read_the_audit(world: World, username: str, path: str) -> None:
    assert world.client(username).get(path).status_code == 403


def test_entries_name_actor_action_and_linked_subject(world: World) -> None:
    card = world.card()
    decisions.deny(
        world.member("approver"),
        card.pk,
        decisions.Decision(digest=card.digest, reason="It is <new>."),
    )
    run, call = card.run, card.tool_call
    append_entries(
        world,
        entry(world.employee.pk),
        audit.NewEntry("user:operator", "run_cancelled", f"run:{run.pk}"),
        audit.NewEntry(
            "employee:Dana", "call_started", f"tool_call:{call.pk}", {"tool": call.tool}
        ),
        audit.NewEntry("user:admin", "membership_changed", "membership:7", {"row": "ada in Acme"}),
        audit.NewEntry(
            "gadget",
            "standing_grant_ended",
            "standing_grant:12",
            {"because": "The tool has changed."},
        ),
        audit.NewEntry("gadget", "something_new", "odd subject"),
        audit.NewEntry("user:admin", "trigger_created", "trigger:7", {"name": "New issues"}),
        audit.NewEntry("standing_grant:7", "card_approved", "odd subject"),
    )
    html = read_page(world.client("admin"))
    for part in (
        f'denied a card: <a href="/approvals/{card.pk}/">card {card.pk}: Update record',
        f'<a href="/employees/{world.employee.pk}/">employee Dana</a>',
        f'cancelled a run: <a href="/runs/{run.pk}/">run {run.pk}: “Set the phone',
        f'started a call: <a href="{build_line_url(run.pk, call.pk)}">“data.updateRecord” in run {run.pk}</a>',
        "changed a member&#x27;s role: membership 7: “ada in Acme”",
        "ended a standing grant: standing grant 12",
        "The tool has changed.",
        "something new: odd subject",
        "created a trigger: trigger 7: “New issues”",
        "<td>standing grant 7</td>",
        "It is &lt;new&gt;.",
    ):
        assert part in html


def test_every_action_has_a_description() -> None:
    """Actions are string constants in calls of the functions that record them."""
    written = set()
    for path in [
        *settings.BASE_DIR.glob("agents/**/*.py"),
        *settings.BASE_DIR.glob("gadget_site/**/*.py"),
    ]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "attr", getattr(node.func, "id", "")) in RECORDING
            ):
                texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
                written |= {
                    text
                    for text in texts
                    if isinstance(text, str) and re.fullmatch("[a-z]+(_[a-z]+)+", text)
                }
    assert {"receipt_redeemed", "trigger_created", "webhook_switched_off"} <= written
    assert written <= set(ACTION_TEXTS)


def test_entries_of_another_organization_are_not_shown(world: World) -> None:
    foreign = world.others_employee.pk
    append_entries(world, entry(foreign), audit.NewEntry("user:admin", "run_cancelled", "run:x"))
    html = read_page(world.client("admin"))
    assert "Hank" not in html
    assert f"/employees/{foreign}/" not in html
    assert "No matching entries" in read_page(world.client("outsider"))


def test_entries_can_be_filtered_by_actor_action_and_dates(world: World) -> None:
    append_entries(
        world,
        entry(1),
        entry(2, actor="employee:Dana", action="call_started"),
        entry(3, actor="gadget"),
    )
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
        "?from=0001-01-01": [3, 2, 1],
        "?to=0001-01-01": [],
        "?from=9999-12-31": [],
        "?from=0001-W01-1&to=99990101": [3, 2, 1],
    }.items():
        html = read_page(client, query)
        assert [n for n in (3, 2, 1) if f'id="entry-{n}"' in html] == numbers, query


def test_a_filter_by_day_finds_entries_whose_numbers_are_out_of_order(world: World) -> None:
    append_entries(world, *(entry(number) for number in range(5)))
    for number, minutes in enumerate((-70, -1, 1, -2, 70), 1):
        at = datetime(2026, 3, 2, tzinfo=UTC) + timedelta(minutes=minutes)
        AuditEntry.objects.filter(seq=number).update(at=at)
    client = world.client("admin")
    for query, numbers in {"?from=2026-03-02": [5, 3], "?to=2026-03-01": [4, 2, 1]}.items():
        for also in (
            "",
            "&actor=admin",
            "&action=employee_changed",
            "&actor=admin&action=employee_changed",
        ):
            html = read_page(client, query + also)
            assert [n for n in range(5, 0, -1) if f'id="entry-{n}"' in html] == numbers, (
                query + also
            )
        assert len(json.loads(export(client, f"{query}&format=json"))) == len(numbers)


def test_a_filter_by_actor_and_action_scans_a_limited_number_of_entries_and_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_entries(
        world, entry(1), *(entry(number, actor="user:operator") for number in range(2, 6))
    )
    monkeypatch.setattr(audit_pages.load_audit_page, "__defaults__", (2,))
    query, found = "?actor=admin&action=employee_changed", []
    for _ in range(2):
        html = read_page(world.client("admin"), query)
        found += re.findall(r'id="entry-(\d+)"', html)
        following = re.search(r'href="/audit/([^"]+)" rel="next">Search older entries', html)
        assert following is not None
        assert "No match in" in html
        query = following[1].replace("&amp;", "&")
    assert found == []
    html = read_page(world.client("admin"), query)
    assert re.findall(r'id="entry-(\d+)"', html) == ["1"]
    assert "Search older" not in html


@pytest.mark.parametrize(
    "query", ["?actor=approver", "?action=call_started", "?actor=approver&action=call_started"]
)
def test_a_filtered_list_continues_after_its_cursor(world: World, query: str) -> None:
    started = [entry(number, actor="user:approver", action="call_started") for number in range(60)]
    append_entries(
        world, *(each for pair in zip(started, [entry()] * 60, strict=True) for each in pair)
    )
    client, found = world.client("admin"), []
    for suffix in ("", "&before=21"):
        html = read_page(client, query + suffix)
        found += [int(number) for number in re.findall(r'id="entry-(\d+)"', html)]
        assert ("before=21" in html) is (suffix == "")
    assert found == list(range(119, 0, -2))


def test_the_list_continues_after_its_cursor(world: World) -> None:
    append_entries(world, *(entry(number) for number in range(60)))
    client = world.client("admin")
    assert "before=11" in read_page(client, "?action=employee_changed")
    older = read_page(client, "?action=employee_changed&before=11")
    assert 'id="entry-10"' in older
    assert 'id="entry-11"' not in older
    assert "Older entries" not in older


def test_the_number_of_queries_is_independent_of_the_number_of_entries(
    world: World, django_assert_max_num_queries: Any
) -> None:
    card = world.card()
    kinds = (
        f"run:{card.run_id}",
        f"approval:{card.pk}",
        f"tool_call:{card.tool_call_id}",
        "record:1",
        "employee:1",
    )
    append_entries(world, *(audit.NewEntry("user:admin", "x", kind) for kind in kinds * 10))
    client = world.client("admin")
    read_page(client)
    with django_assert_max_num_queries(18):  # six of these queries load the marks of waiting cards
        read_page(client)


class TestAnExport:
    def test_as_csv_or_json_contains_all_matching_entries_with_the_oldest_first(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(audit_view, "CHUNK_SIZE", 7)
        append_entries(
            world, *(entry(number, text="ä\n") for number in range(40)), entry(actor="gadget")
        )
        client = world.client("admin")
        rows = list(csv.DictReader(io.StringIO(export(client, "?actor=admin"))))
        assert [int(row["seq"]) for row in rows] == list(range(1, 41))
        whole = json.loads(export(client, "?format=json"))
        assert len(whole) == 41
        assert whole[0]["payload"] == {"text": "ä\n"}
        assert [row["previous_hash"] for row in whole[1:]] == [row["hash"] for row in whole[:-1]]

    def test_is_empty_if_there_are_no_entries(self, world: World) -> None:
        assert json.loads(export(world.client("admin"), "?format=json")) == []
        assert export(world.client("admin"), "").startswith("seq,at,actor")

    def test_has_the_number_of_entries_in_its_file_name(self, world: World) -> None:
        append_entries(world, entry(), entry(actor="gadget"))
        client = world.client("admin")
        for query, count in {"": 2, "?actor=gadget&format=json": 1, "?actor=nobody": 0}.items():
            disposition = client.get(f"/audit/export/{query}")["Content-Disposition"]
            assert re.search(rf"-{count}-entries\.(csv|json)", disposition), disposition
        assert "The file name says how many" in read_page(client)

    def test_is_refused_before_it_starts_if_there_are_too_many_entries(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(audit_view, "MAX_EXPORTED", 2)
        append_entries(world, entry(), entry())
        client = world.client("admin")
        assert export(client, "").count("employee_changed") == 2
        append_entries(world, entry(actor="gadget"))
        refused = client.get("/audit/export/")
        assert refused.status_code == 409
        assert "More than 2 entries match" in refused.content.decode()
        assert export(client, "?actor=gadget").count("employee_changed") == 1

    @pytest.mark.parametrize("format_", ["csv", "json"])
    def test_escapes_hidden_characters(self, world: World, format_: str) -> None:
        append_entries(world, entry(text="a\u202eb"))
        text = export(world.client("admin"), f"?format={format_}")
        assert "\u202e" not in text
        assert "\\u202e" in text

    def test_does_not_contain_a_cell_that_starts_a_formula(self, world: World) -> None:
        append_entries(world, entry(actor="=HYPERLINK(1)"))
        (row,) = csv.DictReader(io.StringIO(export(world.client("admin"), "")))
        assert row["actor"] == "'=HYPERLINK(1)"

    def test_refuses_an_unknown_format_and_has_only_entries_of_its_organization(
        self, world: World
    ) -> None:
        append_entries(world, entry())
        assert world.client("admin").get("/audit/export/?format=xml").status_code == 422
        assert json.loads(export(world.client("outsider"), "?format=json")) == []


class TestVerification:
    def test_reports_that_the_chain_is_intact_only_after_it_has_run(self, world: World) -> None:
        append_entries(world, entry(), entry(2))
        client = world.client("admin")
        assert "The log is intact" not in read_page(client)
        html = client.post("/audit/verify/").content.decode()
        assert "The log is intact" in html
        assert AuditHead.objects.get(organization=world.acme).hash in html

    def test_reports_a_changed_entry(self, world: World) -> None:
        append_entries(world, entry(), entry(2), entry(3))
        AuditEntry.objects.filter(organization=world.acme, seq=2).update(actor="user:somebody")
        html = world.client("admin").post("/audit/verify/").content.decode()
        assert "The log is not intact" in html
        assert "entry 2 was changed" in html

    def test_checks_a_long_chain_in_parts(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(audit_view, "MAX_VERIFIED", 3)
        append_entries(world, *(entry(number) for number in range(7)))
        client, read = world.client("admin"), []
        sent: dict[str, str] = {}
        for _ in range(3):
            html = client.post("/audit/verify/", sent).content.decode()
            read += re.findall(r"<b>(.*?)</b>", html.partition("<main")[2])
            sent = dict(re.findall(r'name="(before)" value="(\d+)"', html))
        assert read == [
            "Entries 5 to 7 are intact.",
            "Entries 2 to 4 are intact.",
            "The log is intact up to entry 1.",
        ]
        assert sent == {}

    @pytest.mark.parametrize(("broken", "part"), [(7, 0), (5, 0), (4, 1), (2, 1), (1, 2)])
    @pytest.mark.parametrize("act", ["changed", "removed"])
    def test_finds_a_fault_in_the_part_that_contains_it(
        self, world: World, broken: int, part: int, act: str
    ) -> None:
        append_entries(world, *(entry(number) for number in range(7)))
        row = AuditEntry.objects.filter(organization=world.acme, seq=broken)
        row.update(actor="user:somebody") if act == "changed" else row.delete()
        parts = [audit.verify_part(world.acme.pk, 3, before).faults for before in (None, 5, 2)]
        assert [number for number, faults in enumerate(parts) if faults] == [part]
        assert verify_audit(world.acme.pk)

    def test_finds_a_changed_time(self, world: World) -> None:
        append_entries(world, entry())
        first = AuditEntry.objects.get(organization=world.acme)
        AuditEntry.objects.filter(pk=first.pk).update(at=first.at + timedelta(days=1))
        assert (
            "entry 1 was changed" in world.client("admin").post("/audit/verify/").content.decode()
        )
