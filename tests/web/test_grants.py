"""The pages of standing grants: people create them from a card, check them against past calls, list
and revoke them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.accounts.membership import issue_token
from agents.approvals.warnings.card_marks import load_marks
from agents.approvals.warnings.marks import EMPTIED
from agents.runs.models import Approval, ApprovalStatus
from agents.standing_grants.making import list_grants
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.proposals import ProposedGrant, check_proposal
from agents.web.views import pages
from tests.features import feature
from tests.web.granting import answer, decide, read_inputs, read_page, waiting_card
from tests.world import UPDATE, World, change, post
from tools.office.records.models import Record

pytestmark = [pytest.mark.django_db, pytest.mark.once]


def test_a_card_becomes_a_grant_in_two_clicks(world: World) -> None:
    card, client = waiting_card(world), world.client("approver")
    assert f"/grants/new/?card={card.pk}" in read_page(client, f"/approvals/{card.pk}/")
    page = read_page(client, f"/grants/new/?card={card.pk}")
    assert "<b>1 of the last 1</b>" in page
    response = client.post(f"/grants/new/?card={card.pk}", read_inputs(page))
    assert response.status_code == 302, response.content
    made = StandingGrant.objects.get()
    assert (made.tool, made.employee_id, made.made_by) == (
        UPDATE,
        world.employee.pk,
        world.users["approver"],
    )
    assert {each["param"]: each["rule"] for each in made.conditions} == dict.fromkeys(
        made.params, "equals"
    )
    listed = read_page(client, "/grants/")
    assert "In force" in listed
    assert "0 of 20 used, 20 left" in listed


def test_the_form_says_which_params_need_a_condition_and_why(world: World) -> None:
    card, client = waiting_card(world), world.client("approver")
    page = read_page(client, f"/grants/new/?card={card.pk}")
    assert page.count("so it needs a condition.") == 1, "record_id needs none"
    _, _, behind = page.partition('name="path" value="changes.phone"')
    assert "It names a recipient, so it needs a condition." in behind.partition("</fieldset>")[0]


def test_a_preview_shows_changes_before_they_are_saved(world: World) -> None:
    card, client = waiting_card(world), world.client("approver")
    address = f"/grants/new/?card={card.pk}"
    values = read_inputs(read_page(client, address))
    changed = {**values, "rule.record_id": "any"}
    response = client.post(address, changed)
    assert response.status_code == 200
    assert not StandingGrant.objects.exists()
    again = read_inputs(" ".join(response.content.decode().split()))
    assert again["rule.record_id"] == "any"
    assert client.post(address, again).status_code == 302
    assert "record_id" not in {each["param"] for each in StandingGrant.objects.get().conditions}


def test_an_admin_can_simulate_the_form_without_saving_a_grant(world: World) -> None:
    card, client = waiting_card(world), world.client("admin")
    address = f"/grants/new/?card={card.pk}"
    page = read_page(client, address)
    assert "Simulate with recorded calls" in page
    response = client.post(address, {**read_inputs(page), "simulate": "1", "rule.record_id": "any"})
    shown = " ".join(response.content.decode().split())
    assert response.status_code == 200
    assert f"approve calls to {UPDATE} with a standing grant" in shown
    assert '<bdi class="field-name">record_id</bdi> any value' in shown
    assert "Save policy draft" in shown
    assert not StandingGrant.objects.exists()


def test_the_page_says_why_a_form_cannot_be_simulated_and_keeps_its_values(world: World) -> None:
    card, client = waiting_card(world), world.client("admin")
    address = f"/grants/new/?card={card.pk}"
    values = read_inputs(read_page(client, address))
    response = client.post(address, {**values, "simulate": "1", "rule.changes.phone": "any"})
    assert response.status_code == 422
    shown = response.content.decode()
    assert "so it needs a condition" in shown
    assert read_inputs(" ".join(shown.split()))["rule.changes.phone"] == "any"


def test_only_admins_can_simulate_a_grant(world: World) -> None:
    card, client = waiting_card(world), world.client("approver")
    address = f"/grants/new/?card={card.pk}"
    page = read_page(client, address)
    assert "Simulate with recorded calls" not in page
    assert client.post(address, {**read_inputs(page), "simulate": "1"}).status_code == 403


def test_denied_cards_that_the_grant_would_have_approved_are_listed(world: World) -> None:
    denied = waiting_card(world)
    decide(world, denied, ApprovalStatus.DENIED)
    Approval.objects.filter(pk=denied.pk).update(reason="They moved away.")
    card = waiting_card(world)
    page = read_page(world.client("approver"), f"/grants/new/?card={card.pk}")
    assert "A person denied 1 of them" in page
    assert "They moved away." in page


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"max_uses": "many"}, "Enter the number of calls in digits."),
        ({"max_uses": "5000"}, "The number of calls must be 1 to 1,000."),
        ({"lifetime": "forever"}, "Choose how long the standing grant is valid."),
        ({"employee": "x"}, "is not an id"),
        ({"rule.record_id": "magic"}, "choose a condition"),
        ({"rule.record_id": "range", "least.record_id": "ten"}, "is not a number"),
        ({"rule.record_id": "range"}, "enter the lowest number, the highest, or both"),
        (
            {"rule.record_id": "one_of", "value.record_id": ""},
            "give a list with at least one value",
        ),
        (
            {"rule.changes.phone": "any"},
            "Changes.phone names a recipient, so it needs a condition",
        ),
        ({"path": ["nothing"], "rule.nothing": "equals"}, "It has: changes, record_id"),
        (
            {"path": ["changes.phoen"], "rule.changes.phoen": "equals"},
            "changes has: archived, attributes, category",
        ),
        ({"path": ["record_id.x"], "rule.record_id.x": "equals"}, "record_id has: none"),
        ({"rule.record_id": "range", "least.record_id": "NaN"}, "'NaN' is not a number"),
        ({"rule.record_id": "range", "most.record_id": "-Infinity"}, "'-Infinity' is not a number"),
        ({"rule.record_id": "range", "most.record_id": "1e999"}, "'1e999' is not a number"),
        ({"kind.record_id": "json", "value.record_id": "[1e999]"}, "is not JSON, such as 12"),
        (
            {"kind.record_id": "json", "value.record_id": "[" * 470 + "]" * 470},
            "is not JSON, such as 12",
        ),
        (
            {"kind.record_id": "json", "value.record_id": '{"a":' * 800 + "1" + "}" * 800},
            "is not JSON, such as 12",
        ),
        ({"rule.record_id": "range", "least.record_id": "[" * 800 + "]" * 800}, "is not a number"),
        ({"tool": "data.nothing"}, "There is no tool"),
    ],
)
def test_invalid_input_is_explained_and_creates_no_grant(
    world: World, changes: dict[str, Any], says: str
) -> None:
    card, client = waiting_card(world), world.client("approver")
    address = f"/grants/new/?card={card.pk}"
    values = {**read_inputs(read_page(client, address)), **changes}
    response = client.post(address, values)
    assert response.status_code == 422
    assert says in response.content.decode().replace("&#x27;", "'")
    assert not StandingGrant.objects.exists()


CHANGES = ("rule.changes.notes", "rule.changes.score")
NUMBER = {"kind.record_id": "json", "value.record_id": "5"}
RANGE = {"rule.record_id": "range", "least.record_id": "9", "most.record_id": "1"}
SCORE = {"rule.changes.score": "equals", "kind.changes.score": "json", "value.changes.score": "5"}


@feature(
    "Figures and metrics",
    "A standing grant that no call can match says so before it is saved",
    "agents/standing_grants/coverage.py",
)
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rule.record_id": "any"} | dict.fromkeys(CHANGES, "any"), "There is no condition"),
        (RANGE, "Nothing can match: the conditions on record_id contradict each other."),
        (
            {**RANGE, "most.record_id": ""},
            "record_id is a text, which the condition on it never allows.",
        ),
        (NUMBER, "record_id is a text, which the condition on it never allows."),
        ({**SCORE, "rule.changes.score": "prefix"}, "changes.score is a whole number, which"),
        ({**SCORE, "value.changes.score": '"5"'}, "changes.score is a whole number, which"),
        (
            {"rule.record_id": "absent"},
            "Nothing can match: every call has the parameter record_id, which",
        ),
        (
            dict.fromkeys(("rule.changes.notes", "rule.changes.score"), "absent"),
            "Nothing can match: every call has the parameter changes, which",
        ),
        (
            {"path": ["record_id", "changes"], "rule.changes": "equals", "kind.changes": "json"}
            | {"value.changes": '{"notes": "Call"}'},
            "Nothing can match: changes has parameters of its own, and these conditions leave out changes.notes.",
        ),
        (SCORE, ""),
        ({**SCORE, "value.changes.score": "5.0"}, ""),
        ({"rule.record_id": "prefix"}, ""),
    ],
)
def test_the_preview_says_if_a_grant_would_match_everything_or_nothing(
    world: World, changes: dict[str, Any], says: str
) -> None:
    params = {"record_id": str(world.records[0].pk), "changes": {"notes": "Call", "score": 5}}
    card, client = waiting_card(world, **params), world.client("approver")
    address = f"/grants/new/?card={card.pk}"
    response = client.post(
        address, {**read_inputs(read_page(client, address)), **changes, "look": "1"}
    )
    page = response.content.decode()
    assert 'id="preview"' in page
    assert says in page
    assert ("Nothing can match" in page or "There is no condition" in page) == bool(says)


def test_a_param_with_a_default_is_in_every_call(world: World) -> None:
    client = world.client("approver")
    address = f"/grants/new/?tool=data.createRecord&employee={world.employee.pk}"
    values = read_inputs(read_page(client, address))
    assert (values["rule.status"], values["value.status"], values["rule.region"]) == (
        "equals",
        "active",
        "absent",
    )
    response = client.post(address, {**values, "rule.status": "absent", "look": "1"})
    assert "every call has the parameter status" in response.content.decode()


def test_a_grant_may_name_any_param_of_an_object_with_free_names(world: World) -> None:
    world.employee.grants.create(tool="data.createRecord")
    proposal = ProposedGrant(
        "data.createRecord", world.employee.pk, None, ("name", "status", "attributes.employees"), ()
    )
    assert check_proposal(world.acme.pk, proposal).name == "data.createRecord"


def test_an_empty_form_lists_the_fields_of_object_params(world: World) -> None:
    page = read_page(
        world.client("approver"), f"/grants/new/?tool={UPDATE}&employee={world.employee.pk}"
    )
    values = read_inputs(page)
    assert "changes.phone" in values["path"]
    assert "changes" not in values["path"]


def test_hostile_values_stay_text_in_the_form_and_in_its_preview(world: World) -> None:
    evil = "</textarea><script>alert(1)</script>\"'"
    card = waiting_card(world, **change(world.records[0], evil))
    Approval.objects.filter(pk=card.pk).update(sentence=evil)
    page = read_page(world.client("approver"), f"/grants/new/?card={card.pk}")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    response = world.client("approver").post(
        f"/grants/new/?card={card.pk}", {"tool": evil, "path": evil, "look": "1"}
    )
    assert "<script>alert" not in response.content.decode()


def test_a_card_that_no_grant_can_approve_says_why(world: World) -> None:
    card = world.destructive_card()
    client = world.client("approver")
    assert "/grants/new/" not in read_page(client, f"/approvals/{card.pk}/").partition("<main")[2]
    response = client.get(f"/grants/new/?card={card.pk}")
    assert response.status_code == 409
    assert "A person decides every destructive call." in response.content.decode()


def test_a_card_with_a_mark_that_a_condition_can_settle_becomes_a_grant(world: World) -> None:
    Record.objects.filter(pk=world.records[0].pk).update(phone="+1 555 0100")
    card = waiting_card(world, **change(world.records[0], ""))
    assert [mark.kind for mark in load_marks([card])[card.pk]] == [EMPTIED]
    assert world.client("approver").get(f"/grants/new/?card={card.pk}").status_code == 200


@pytest.mark.parametrize(("name", "is_marked"), [("Acme", False), ("\u0410cme", True)])
def test_a_listed_grant_names_the_marks_of_its_conditions(
    world: World, name: str, is_marked: bool
) -> None:
    made = world.standing_grant()
    made.conditions = [{"param": "changes.name", "rule": "equals", "value": name}]
    made.save()
    page = read_page(world.client("approver"), "/grants/")
    assert ("Marked: Mixed alphabets" in page) == is_marked


def test_an_approver_can_revoke_and_a_viewer_can_only_read(world: World) -> None:
    made = world.standing_grant()
    assert "Revoke" not in read_page(world.client("viewer"), "/grants/")
    client = world.client("approver")
    assert client.post(f"/grants/{made.pk}/revoke/").status_code == 302
    assert "No standing grants" in read_page(client, "/grants/")
    assert "Revoked by approver" in read_page(client, "/grants/?ended=1")


def test_grants_of_other_organizations_are_not_listed(world: World) -> None:
    world.standing_grant()
    page = read_page(world.client("outsider"), "/grants/")
    assert "No standing grants" in page


class TestGrantsOverRest:
    def terms(self, world: World) -> dict[str, Any]:
        return {
            "tool": UPDATE,
            "employee_id": str(world.employee.pk),
            "conditions": [{"param": "record_id", "rule": "equals", "value": "1"}],
            "free_params": ["changes.notes"],
            "max_uses": 3,
            "lifetime_s": 60,
        }

    def test_can_be_created_listed_and_revoked(self, world: World) -> None:
        client = world.client("approver")
        response = post(client, "/api/standing_grants", self.terms(world))
        assert response.status_code == 201, response.content
        made = response.json()
        assert (made["status"], made["used"], made["free_params"]) == (
            "active",
            0,
            ["changes.notes"],
        )
        assert [each["id"] for each in client.get("/api/standing_grants").json()["items"]] == [
            made["id"]
        ]
        revoked = post(client, f"/api/standing_grants/{made['id']}/revoke").json()
        assert revoked["status"] == "revoked"

    def test_are_created_once_for_a_request_that_is_sent_again_with_the_same_id(
        self, world: World
    ) -> None:
        terms = self.terms(world) | {"client_grant_id": "g-1"}
        client = world.client("approver")
        responses = [post(client, "/api/standing_grants", terms) for _ in range(12)]
        assert [response.status_code for response in responses] == [201] + [200] * 11
        assert len({response.json()["id"] for response in responses}) == 1
        assert StandingGrant.objects.count() == 1
        post(client, f"/api/standing_grants/{responses[0].json()['id']}/revoke")
        assert post(client, "/api/standing_grants", terms).json()["status"] == "revoked"

    def test_are_created_separately_for_requests_without_id(self, world: World) -> None:
        for _ in range(2):
            assert (
                post(
                    world.client("approver"), "/api/standing_grants", self.terms(world)
                ).status_code
                == 201
            )
        assert StandingGrant.objects.count() == 2

    def test_cannot_reuse_the_request_id_of_the_same_person_with_other_terms(
        self, world: World
    ) -> None:
        terms = self.terms(world) | {"client_grant_id": "g-1"}
        post(world.client("approver"), "/api/standing_grants", terms)
        for changed in (
            {"max_uses": 4},
            {"lifetime_s": 61},
            {"free_params": ["changes.notes", "changes.domain"]},
        ):
            response = post(world.client("approver"), "/api/standing_grants", terms | changed)
            assert (response.status_code, response.json()["code"]) == (409, "conflict"), changed
        assert post(world.client("admin"), "/api/standing_grants", terms).status_code == 201

    def test_cannot_be_created_with_a_token(self, world: World) -> None:
        _, token = issue_token(world.member("approver"), "script")
        response = post(
            Client(), "/api/standing_grants", self.terms(world), authorization=f"Bearer {token}"
        )
        assert response.status_code == 403
        assert not list_grants(world.acme.pk).exists()

    @pytest.mark.parametrize(
        ("changes", "says"),
        [
            ({"free_params": []}, "every call has the parameter changes"),
            (
                {"conditions": [{"param": "record_id", "rule": "equals", "value": 1}]},
                "record_id is a text",
            ),
            ({"free_params": ["changes.nots"]}, "changes has: archived, attributes"),
        ],
    )
    def test_that_match_nothing_are_refused(
        self, world: World, changes: dict[str, Any], says: str
    ) -> None:
        response = post(
            world.client("approver"), "/api/standing_grants", self.terms(world) | changes
        )
        assert response.status_code == 422
        assert says in response.json()["detail"]
        assert not StandingGrant.objects.exists()

    @pytest.mark.parametrize("number", ["1e999", "[-1e999]"])
    def test_with_an_infinite_number_are_refused(self, world: World, number: str) -> None:
        terms = self.terms(world) | {
            "conditions": [{"param": "record_id", "rule": "maximum", "value": 0}]
        }
        body = json.dumps(terms).replace('"value": 0', f'"value": {number}')
        client = world.client("approver")
        response = client.post("/api/standing_grants", body, content_type="application/json")
        assert response.status_code == 422
        assert (
            "record_id: the value has a number or a text that cannot be stored."
            in response.json()["detail"]
        )

    def test_with_an_invalid_condition_are_refused_with_the_reason(self, world: World) -> None:
        terms = self.terms(world) | {
            "conditions": [{"param": "record_id", "rule": "minimum", "value": "x"}]
        }
        response = post(world.client("approver"), "/api/standing_grants", terms)
        assert response.status_code == 422
        assert "is not a number" in response.json()["detail"]


class TestTheListOfGrants:
    def read_ids(self, world: World, path: str) -> list[int]:
        page = read_page(world.client("approver"), path)
        return [int(each) for each in re.findall(r'id="grant-(\d+)"', page)]

    def test_shows_grants_in_force_and_ended_grants_with_the_newest_first(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pages, "PAGE_SIZE", 2)
        made = [world.standing_grant().pk for _ in range(5)][::-1]
        page = read_page(world.client("approver"), "/grants/")
        assert f'href="?before={made[1]}" rel="next"' in page
        assert "Newest standing grants" not in page
        assert self.read_ids(world, "/grants/") == made[:2]
        assert self.read_ids(world, f"/grants/?before={made[1]}") == made[2:4]
        last = read_page(world.client("approver"), f"/grants/?before={made[3]}")
        assert 'rel="next"' not in last
        assert "Newest standing grants" in last
        StandingGrant.objects.update(ended_at=Now(), ended_because="Over.")
        ended = read_page(world.client("approver"), "/grants/?ended=1")
        assert f'href="?ended=1&amp;before={made[1]}" rel="next"' in ended
        assert self.read_ids(world, f"/grants/?ended=1&before={made[3]}") == made[4:]

    def test_shows_the_newest_grants_for_an_invalid_cursor(self, world: World) -> None:
        made = world.standing_grant()
        assert self.read_ids(world, "/grants/?before=x") == [made.pk]

    def test_loads_the_last_calls_in_one_query(self, world: World) -> None:
        def count() -> int:
            with CaptureQueriesContext(connection) as queries:
                self.read_ids(world, "/grants/")
            return len(queries)

        made = [world.standing_grant()]
        answer(world, made[0])
        few = count()
        made += [world.standing_grant() for _ in range(3)]
        for grant in made:
            answer(world, grant)
        assert count() == few

    def test_shows_the_last_five_calls_of_each_grant(self, world: World) -> None:
        made = [world.standing_grant() for _ in range(2)]
        cards = {grant.pk: [answer(world, grant).pk for _ in range(6)] for grant in made}
        parts = read_page(world.client("approver"), "/grants/").split('id="grant-')[1:]
        for part in parts:
            shown = [
                int(each)
                for each in re.findall(r'href="/approvals/(\d+)/"', part.partition("</details>")[0])
            ]
            assert shown == cards[int(part.partition('"')[0])][:0:-1]
