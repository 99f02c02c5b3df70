"""Every hostile string in all places of every page: additional elements, hidden characters and
links to other sites are faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import urljoin, urlsplit

import pytest
from django.db import transaction
from django.test import Client
from django.urls import resolve

from agents.runs.models import Approval
from agents.triggers.models import Trigger
from agents.urls import urlpatterns
from agents.webhooks.models import Webhook
from tests.hostile import EVERY_STRING, FAMILIES, HOSTILE, LONG
from tests.hostile.pages import Reading, Shape, strange, tells
from tests.hostile.work import add_work
from tests.hostile.world import IN_ALL, OF_LINES, HostileWorld, Words, make_hostile_world
from tests.source_tree import ROOT
from tools.contract.outside_text import cut_middle

pytestmark = [pytest.mark.django_db, pytest.mark.once]

HARMLESS_PAGES = 9
"""The number of pages of each kind that are read with harmless text."""
GRANTS_ON_A_PAGE = 40
IN_A_ROW = cut_middle("x" * OF_LINES).index("…")
"""The number of characters that a row of the inbox shows from the start of a text. Only four texts
are longer: the row shows them as a name, whose middle is cut out. The card shows them in full."""


def test_there_are_more_than_300_different_strings() -> None:
    assert len(EVERY_STRING) > 300
    assert len(set(EVERY_STRING)) == len(EVERY_STRING)
    assert max(len(text) for text in EVERY_STRING) == LONG


def test_each_family_contributes_strings() -> None:
    assert all(set(family) & set(HOSTILE) for family in FAMILIES.values())
    assert any(len(text) == LONG for text in HOSTILE)


def test_the_check_detects_unescaped_text() -> None:
    for text in (
        *FAMILIES["handlers"],
        *FAMILIES["bidirectional"][:-1],
        *FAMILIES["zero width"][:-2],
    ):
        reading = Reading(f"<p>{text}</p>")
        assert reading.faults, text
    for end in ('"', "'"):
        broken = Reading(f"<p title={end}{end} autofocus onfocus=window.hacked=1 x={end}{end}></p>")
        assert broken.faults
        assert strange(broken, {("p", frozenset({"title"}))})
    for address in ("https://evil.example/", "//evil.example/", "javascript:1", "data:text/html,x"):
        assert Reading(f'<a href="{address}">x</a>').faults, address


INPUT, ACTS = "tests/hostile/test_input.py", "tests/hostile/test_acts.py"
READ_ELSEWHERE = {
    "login": f"{INPUT}::test_input_from_strangers_is_returned_escaped",
    "join": f"{INPUT}::test_input_from_strangers_is_returned_escaped",
    "join-link": f"{INPUT}::test_input_from_strangers_is_returned_escaped",
    "invite": f"{INPUT}::test_input_from_strangers_is_returned_escaped",
    "new-password": f"{INPUT}::test_the_new_password_page_escapes_the_account_name",
    "new-password-link": f"{INPUT}::test_the_new_password_page_escapes_the_account_name",
    "nothing": f"{INPUT}::test_an_unknown_address_is_reported_as_escaped_text",
    "records-import": f"{INPUT}::test_the_report_of_bad_rows_escapes_their_text",
    "records-export": f"{INPUT}::test_an_exported_file_contains_every_string_and_no_formula",
    "transcript-markdown": f"{INPUT}::test_transcripts_and_exports_hide_no_characters",
    "transcript-json": f"{INPUT}::test_transcripts_and_exports_hide_no_characters",
    "playback-export": f"{INPUT}::test_transcripts_and_exports_hide_no_characters",
    "draft-download": f"{INPUT}::test_transcripts_and_exports_hide_no_characters",
    "oversight-export": "tests/web/test_oversight.py::test_people_are_exported_without_formulas",
    "audit-export": f"{INPUT}::test_transcripts_and_exports_hide_no_characters",
    "edit": f"{INPUT}::test_a_refused_form_keeps_its_values_escaped",
    "approve": f"{INPUT}::test_refused_reasons_and_proofs_are_returned_escaped",
    "deny": f"{INPUT}::test_refused_reasons_and_proofs_are_returned_escaped",
    "resolve": f"{INPUT}::test_refused_reasons_and_proofs_are_returned_escaped",
    "continue": f"{INPUT}::test_a_task_that_cannot_start_stays_in_its_form",
    "message": f"{ACTS}::test_refused_input_is_returned_escaped",
    "answer": f"{ACTS}::test_refused_input_is_returned_escaped",
    "undo": f"{ACTS}::test_refused_input_is_returned_escaped",
    "switch-organization": f"{ACTS}::test_refused_input_is_returned_escaped",
    "audit-verify": f"{ACTS}::test_refused_input_is_returned_escaped",
    "change-role": f"{ACTS}::test_confirmations_and_messages_about_a_member_escape_names",
    "password-link": f"{ACTS}::test_confirmations_and_messages_about_a_member_escape_names",
    "remove-member": f"{ACTS}::test_messages_about_removed_members_and_withdrawn_invitations_escape_names",
    "revoke-invitation": f"{ACTS}::test_messages_about_removed_members_and_withdrawn_invitations_escape_names",
    "files": f"{ACTS}::test_file_names_are_escaped_when_refused_listed_and_confirmed",
    "files-upload": f"{ACTS}::test_file_names_are_escaped_when_refused_listed_and_confirmed",
    "file-delete": f"{ACTS}::test_file_names_are_escaped_when_refused_listed_and_confirmed",
    "schedule-create": f"{ACTS}::test_a_refused_schedule_stays_in_its_form_and_a_confirmation_escapes_its_task",
    "trigger-create": "tests/web/test_triggers.py::test_hostile_input_stays_text_in_the_form",
    "schedule-cancel": f"{ACTS}::test_a_refused_schedule_stays_in_its_form_and_a_confirmation_escapes_its_task",
    "grant-new": "tests/web/test_grants.py::test_hostile_values_stay_text_in_the_form_and_in_its_preview",
    "restored-limits": "tests/web/test_restored_limits.py::test_hostile_names_and_values_are_escaped",
    "simulator-save": "tests/web/test_simulator.py::test_hostile_input_stays_text",
    "try-tool": "tests/web/test_manual_calls.py::test_escapes_hostile_params",
    "file-download": "tests/web/test_files.py::test_a_hostile_path_is_refused",
    "search": "tests/web/test_frame.py::test_shows_hostile_names_as_text",
}
"""The tests that fill the pages at other addresses, by the name of the address."""
SIMULATED_RULE = (
    '/simulator/?changes=[{"kind":"approval_rule","rule":{"id":0,"name":"two","needed":2}}]'
)
TELLS_NO_TEXT = {
    "logout": "leads on to the login, which is empty",
    "agent-key-revoke": "leads on to the keys, and names the key, whose name is checked",
    "action-level": "leads on to the keys, and names the action, which has only letters, digits and a few signs",
    "webhook-switch": "leads on to the webhook, and names it; its name is checked",
    "webhook-rotate": "leads on to the webhooks",
    "webhook-remove": "leads on to the webhooks",
    "webhook-repeat": "leads on to the webhook",
    "hook": "answers JSON of its own words, and with the address of a run",
    "trigger-send-again": "leads on to the run",
    "trigger-switch": "leads on to the triggers, and names the trigger, whose name is checked",
    "trigger-renew": "leads on to the triggers",
    "trigger-remove": "leads on to the triggers",
    "public-keys": "is JSON of this installation's own",
    "not-offered": "is JSON of its own words",
    "cancel": "leads on to the run",
    "theme": "leads back to the page",
    "snooze": "says until when",
    "end-snooze": "leads on to the inbox",
    "break-glass": "leads on to the card",
    "dismiss": "leads on to the card",
    "undo-bulk": "leads on to the inbox",
    "take": "leads on to the card",
    "release": "leads on to the card",
    "save-view": "leads on to the inbox",
    "delete-view": "leads on to the inbox",
    "deputy-end": "says a username, which has only letters, digits and a few signs",
    "notice-repeat": "leads on to the notices",
    "notice-choices": "leads on to the notices",
    "channel-add": "leads on to the notices",
    "browser-add": "leads on to the notices, and cleans the browser's name",
    "service-worker": "is a script, the same for everybody",
    "channel-confirm": "leads on to the notices, and names the address, whose form is checked",
    "channel-remove": "leads on to the notices, and names the address, whose form is checked",
    "follow": "leads on to the run",
    "policy-draft-delete": "leads on to the simulator",
    "shadow-start": "leads on to the draft",
    "shadow-stop": "leads on to the draft",
    "grant-revoke": "says the number of the standing grant",
    "schedule-pause": "says the number of the schedule",
    "schedule-resume": "says the number of the schedule",
}


def assert_each_address_is_judged(here: set[str]) -> None:
    """Check that each address is in `every_page`, or in one of the lists above; `here` contains the
    names of the pages that are read."""
    names = [str(pattern.name) for pattern in urlpatterns]
    assert {*here, *READ_ELSEWHERE, *TELLS_NO_TEXT} == set(names)
    assert len(here) + len(READ_ELSEWHERE) + len(TELLS_NO_TEXT) == len(set(names))


def test_every_test_that_is_listed_as_checking_other_addresses_exists() -> None:
    for place in set(READ_ELSEWHERE.values()):
        path, _, name = place.partition("::")
        assert f"def {name}(" in (ROOT / path).read_text(), place


def world_at_work(*, is_hostile: bool) -> HostileWorld:
    made = make_hostile_world(is_hostile=is_hostile)
    add_work(made)
    return made


def every_page(made: HostileWorld) -> dict[str, list[str]]:
    """Return the addresses of pages that together show every row, by kind."""
    runs, cards = [run.pk for run in made.runs], [card.pk for card in made.cards]
    asks = (
        Approval.objects.filter(run__ask__isnull=False).order_by("pk").values_list("pk", flat=True)
    )
    return {
        "home": ["/", "/?live=1"],
        "employees": ["/employees/"],
        "employee": [f"/employees/{one.pk}/" for one in made.employees],
        "trust": [f"/employees/{one.pk}/trust/" for one in made.employees],
        "tools": ["/tools/"],
        "tool": ["/tools/data.updateRecord/"],
        "agents": ["/agents/"],
        "asks": ["/agents/asks/"],
        "triggers": ["/triggers/"],
        "webhooks": ["/webhooks/"],
        "webhook": [
            f"/webhooks/{pk}/"
            for pk in Webhook.objects.order_by("pk").values_list("pk", flat=True)[:12]
        ],
        "trigger": [
            f"/triggers/{pk}/"
            for pk in Trigger.objects.order_by("pk").values_list("pk", flat=True)[:12]
        ],
        "card of an ask": [f"/approvals/{pk}/" for pk in asks[:12]],
        "runs": ["/runs/"],
        "run": [f"/runs/{pk}/" for pk in runs],
        "call": [f"/runs/{call.run_id}/calls/{call.pk}/" for call in made.calls],
        "approvals": ["/approvals/"],
        "history": ["/approvals/?history=1"],
        "who may decide": ["/approvals/who/?tool=data.updateRecord"],
        "card": [f"/approvals/{pk}/" for pk in (*cards[:9], *cards[1::3])],
        "fragment": [f"/approvals/{pk}/card/" for pk in cards[:9]],
        "records": ["/records/"],
        "record": [f"/records/{record.pk}/" for record in made.records],
        "drafts": ["/drafts/"],
        "draft": [f"/drafts/{draft.pk}/" for draft in made.drafts],
        "audit": ["/audit/"],
        "oversight": ["/oversight/"],
        "users": ["/users/"],
        "simulator": [
            "/simulator/",
            "/simulator/?kind=stop&tool=data.searchRecords",
            SIMULATED_RULE,
        ],
        "policy draft": [f"/simulator/{draft.pk}/" for draft in made.policy_drafts],
        "grants": ["/grants/"],
        "ended grants": ["/grants/?ended=1"],
        "schedules": ["/schedules/"],
        "cancelled schedules": ["/schedules/?cancelled=1"],
        "stop": ["/stop/"],
        "playback": [f"/runs/{pk}/replay/" for pk in runs],
        "nested": [f"/runs/{child.pk}/nested/" for child in made.children],
        "password": ["/account/password/"],
        "deputies": ["/account/deputies/"],
        "preferences": ["/account/preferences/"],
        "notices": ["/notices/"],
        "messages": ["/notices/messages/?all=1"],
    }


def followed(client: Client, address: str, most: int) -> Iterator[tuple[str, Reading]]:
    """Yield the page and its successors by the "next" link."""
    where = address
    for _ in range(most):
        response = client.get(where)
        assert response.status_code == 200, (where, response.status_code)
        reading = Reading(response.content.decode())
        yield where, reading
        if not reading.following:
            return
        where = urljoin(where, reading.following)


def read(made: HostileWorld, kinds: Iterable[str], most: int) -> Iterator[tuple[str, str, Reading]]:
    """Read every page of these kinds as an admin, at most this many of each."""
    client, pages = made.world.client("admin"), every_page(made)
    for kind in kinds:
        for address in pages[kind][:most]:
            for where, reading in followed(client, address, most):
                yield kind, where, reading


def whole(words: Words) -> dict[str, list[str]]:
    """Return the complete text of all pages of each kind."""
    lines, boxes = words.of(OF_LINES), [*words.longest(), *words.of(IN_ALL, "\n")]

    def of(*limits: int) -> list[str]:
        return [text for limit in limits for text in words.of(limit)]

    return {
        "employees": of(80, 120),
        "employee": [*of(40, 80, 120), *boxes],
        "runs": lines,
        "run": [*lines, *boxes],
        "call": lines,
        "approvals": [text[:IN_A_ROW] for text in lines],
        "card": lines,
        "records": [*lines, *of(50, 80, 250)],
        "record": [*lines, *of(40, 50, 80, 100, 250), *boxes],
        "drafts": lines,
        "draft": lines,
        "audit": lines,
        "users": of(120, 150),
        "schedules": [*lines, *boxes, *of(80, 150)],
        "cancelled schedules": [*lines, *boxes, *of(80, 150)],
        "simulator": of(80),
        "policy draft": of(80),
        "grants": lines[:GRANTS_ON_A_PAGE],
        "ended grants": lines[:GRANTS_ON_A_PAGE],
        "stop": of(80, 120, 150),
        "nested": [*lines, *of(80)],
    }


@pytest.mark.every_commit
@pytest.mark.timeout(600)
def test_every_page_escapes_hostile_text_and_shows_all_of_it() -> None:
    known: dict[str, set[Shape]] = {}
    with transaction.atomic():
        harmless = world_at_work(is_hostile=False)
        kinds = list(every_page(harmless))
        for kind, _, reading in read(harmless, kinds, HARMLESS_PAGES):
            assert not reading.faults, (kind, reading.faults)
            known.setdefault(kind, set()).update(reading.shapes)
        transaction.set_rollback(True)

    made = world_at_work(is_hostile=True)
    told: dict[str, str] = dict.fromkeys(kinds, "")
    found: dict[str, list[str]] = {}
    here: set[str] = set()
    for kind, where, reading in read(made, kinds, len(HOSTILE)):
        here.add(str(resolve(urlsplit(where).path).url_name))
        if wrong := [*strange(reading, known[kind]), *reading.faults]:
            found[where] = wrong[:3]
        told[kind] += reading.text
    assert not found
    assert_each_address_is_judged(here)
    for kind, texts in whole(made.words).items():
        assert [text[:80] for text in texts if not tells(told[kind], text)] == [], kind
