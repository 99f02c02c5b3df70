"""The addresses of triggers, and the pages on which people create and watch triggers."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from typing import Any

import pytest
from django.test import Client

from agents.employees.models import Employee
from agents.runs.models import Run, RunStatus
from agents.triggers.models import ReceivedMessage, Trigger
from tests.triggers.conftest import SECRET, sign
from tests.world import World, nobody, streamed

pytestmark = [pytest.mark.django_db, pytest.mark.once]

HOSTILE = '"><script>alert(1)</script>'


def fill_form(world: World, **more: str) -> dict[str, str]:
    """Return values for the fields of a trigger's form; `more` replaces some of them."""
    fields = {
        "name": "Issues",
        "scheme": "github",
        "task": "Triage {{ payload.title }}.",
        "secret": SECRET,
    }
    numbers = {"repeat_hours": "24", "max_queued": "100", "employee": str(world.employee.pk)}
    rules = {"filter_param": "action", "filter_rule": "one_of", "filter_value": "opened, edited"}
    return {**fields, **numbers, **rules, **more}


def create(world: World, **more: str) -> tuple[Trigger, str]:
    """Create a trigger with the form; return it and the page that shows its secret."""
    page = world.client("operator").post("/triggers/new/", fill_form(world, **more), follow=True)
    return Trigger.objects.latest("pk"), page.content.decode()


def post(
    trigger: Trigger, payload: Any, client: Client | None = None, proof: str | None = None
) -> Any:
    """Send a message, correctly signed unless another proof is given."""
    body = json.dumps(payload).encode()
    headers = sign(body) if proof is None else {"x-hub-signature-256": proof}
    sender = client or nobody(needs_csrf=True)
    return sender.post(
        f"/hooks/{trigger.public_id}", body, content_type="application/json", headers=headers
    )


@pytest.mark.parametrize(
    "filled", [{"filter_param": "a\0b"}, {"filter_rule": "minimum", "filter_value": "[" * 100_000}]
)
def test_a_filter_that_cannot_be_stored_is_refused(world: World, filled: dict[str, str]) -> None:
    page = world.client("operator").post("/triggers/new/", fill_form(world, **filled))
    assert page.status_code == 422
    assert not Trigger.objects.exists()


def test_the_form_still_offers_the_triggers_employee_if_that_employee_is_inactive(
    world: World,
) -> None:
    trigger = create(world)[0]
    Employee.objects.filter(pk=world.employee.pk).update(is_active=False)
    page = world.client("operator").get(f"/triggers/{trigger.pk}/").content.decode()
    assert re.search(rf'<option value="{world.employee.pk}" selected>Dana \(not active\)', page)
    assert "(not active)" not in world.client("operator").get("/triggers/").content.decode()


class TestTheAddressOfATrigger:
    def test_returns_the_address_of_the_run(self, world: World) -> None:
        trigger = create(world)[0]
        response = post(trigger, {"action": "opened", "title": "Down"})
        run = Run.objects.get()
        assert (response.status_code, response.json()) == (
            202,
            {
                "status": "started",
                "run_id": str(run.pk),
                "url": f"http://testserver/runs/{run.pk}/",
            },
        )
        again = post(trigger, {"action": "opened", "title": "Down"})
        assert (again.status_code, again.json()) == (202, response.json())

    def test_accepts_a_final_slash(self, world: World) -> None:
        trigger = create(world)[0]
        trigger.public_id += "/"
        assert post(trigger, {"action": "opened", "title": "Down"}).status_code == 202
        trigger.public_id += "x"
        assert post(trigger, {"action": "opened"}).status_code == 404

    def test_accepts_a_message_that_is_filtered_out(self, world: World) -> None:
        response = post(create(world)[0], {"action": "closed"})
        assert (response.status_code, response.json(), Run.objects.count()) == (
            202,
            {"status": "filtered"},
            0,
        )

    @pytest.mark.parametrize(
        ("case", "status"),
        [
            ("wrong", 401),
            ("unknown", 404),
            ("no json", 422),
            ("large", 413),
            ("many", 429),
            ("get", 405),
        ],
    )
    def test_returns_the_status_of_each_refusal(
        self, world: World, case: str, status: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        trigger = create(world)[0]
        payload: Any = {"action": "opened"}
        if case == "unknown":
            trigger.public_id += "x"
        elif case == "no json":
            payload = "text"
        elif case == "large":
            payload = {"text": "x" * 300_000}
        elif case == "many":
            Trigger.objects.update(max_queued=1)
            post(trigger, {"action": "opened", "number": 1})
        if case == "get":
            response = nobody().get(f"/hooks/{trigger.public_id}")
        else:
            response = post(trigger, payload, proof="sha256=0" if case == "wrong" else None)
        assert response.status_code == status
        assert (response.get("Retry-After") is not None) == (case == "many")
        assert SECRET not in response.content.decode()

    def test_returns_the_challenge_of_a_sender_that_verifies_the_address(
        self, world: World
    ) -> None:
        slack = world.trigger(scheme="slack", secret=SECRET)
        body = json.dumps({"type": "url_verification", "challenge": "c1"}).encode()
        now = str(int(time.time()))
        proof = hmac.new(SECRET.encode(), f"v0:{now}:".encode() + body, hashlib.sha256).hexdigest()
        headers = {"x-slack-request-timestamp": now, "x-slack-signature": f"v0={proof}"}
        response = nobody().post(
            f"/hooks/{slack.public_id}", body, content_type="application/json", headers=headers
        )
        assert (response.status_code, response.json(), Run.objects.count()) == (
            200,
            {"challenge": "c1"},
            0,
        )

    def test_ignores_the_session_of_a_person(self, world: World) -> None:
        trigger = create(world)[0]
        response = post(trigger, {"action": "opened"}, world.client("admin"), proof="")
        assert response.status_code == 401


class TestThePagesOfTriggers:
    def test_show_a_new_secret_once_with_the_address(self, world: World) -> None:
        trigger, page = create(world, secret="")
        assert trigger.secret in page
        assert f"http://testserver/hooks/{trigger.public_id}" in page
        assert trigger.secret not in world.client("operator").get("/triggers/").content.decode()
        assert (
            trigger.secret
            not in world.client("operator").get(f"/triggers/{trigger.pk}/").content.decode()
        )

    def test_show_filters_as_they_were_typed(self, world: World) -> None:
        trigger = create(world)[0]
        assert (trigger.filters[0]["param"], trigger.filters[0]["value"]) == (
            "action",
            ["opened", "edited"],
        )
        assert (
            'value="opened, edited"'
            in world.client("operator").get(f"/triggers/{trigger.pk}/").content.decode()
        )

    @pytest.mark.parametrize(
        ("rule", "typed", "stored"),
        [
            ("equals", "5", "5"),
            ("equals", "a, b", "a, b"),
            ("one_of", " a, ,b ", ["a", "b"]),
            ("minimum", "5", 5),
            ("maximum", "-0.5", -0.5),
            ("prefix", "5", "5"),
        ],
    )
    def test_parse_a_filters_value_as_the_filters_rule_requires(
        self, world: World, rule: str, typed: str, stored: Any
    ) -> None:
        trigger = create(world, filter_rule=rule, filter_value=typed)[0]
        assert trigger.filters[0]["value"] == stored

    @pytest.mark.parametrize("rule", ["minimum", "maximum"])
    def test_refuse_a_limit_that_is_not_a_number(self, world: World, rule: str) -> None:
        form = fill_form(world, filter_rule=rule, filter_value="many")
        assert world.client("operator").post("/triggers/new/", form).status_code == 422

    @pytest.mark.parametrize("number", ["", "x", "²", "-1", "9" * 5_000])
    @pytest.mark.parametrize("name", ["repeat_hours", "max_queued"])
    def test_refuse_settings_that_are_not_numbers(
        self, world: World, name: str, number: str
    ) -> None:
        response = world.client("operator").post(
            "/triggers/new/", fill_form(world, **{name: number})
        )
        assert (response.status_code, Trigger.objects.count()) == (422, 0)

    @pytest.mark.parametrize("employee", ["", "x", "0"])
    def test_refuse_a_trigger_without_an_employee(self, world: World, employee: str) -> None:
        response = world.client("operator").post(
            "/triggers/new/", fill_form(world, employee=employee)
        )
        assert (response.status_code, Trigger.objects.count()) == (404, 0)

    def test_keep_incomplete_filters_in_the_form(self, world: World) -> None:
        form = {
            **fill_form(world, name=""),
            "filter_param": ["action", "", "", "title"],
            "filter_rule": ["equals", "prefix", "equals", "pattern"],
            "filter_value": ["", "opened", " ", "Down"],
        }
        page = world.client("operator").post("/triggers/new/", form).content.decode()
        assert re.findall(r'name="filter_param" value="([^"]*)"', page)[:4] == [
            "action",
            "",
            "title",
            "",
        ]
        assert re.findall(r'name="filter_value" value="([^"]*)"', page)[:4] == [
            "",
            "opened",
            "Down",
            "",
        ]

    def test_start_with_an_empty_form_and_keep_typed_values(self, world: World) -> None:
        client = world.client("operator")
        assert 'value="Alarms"' not in client.get("/triggers/").content.decode()
        page = client.post(
            "/triggers/new/", fill_form(world, name="Alarms", task="")
        ).content.decode()
        assert 'value="Alarms"' in page

    def test_offer_only_active_employees_of_the_organization(self, world: World) -> None:
        values = {"organization": world.acme, "provider": world.employee.provider}
        Employee.objects.create(**values, name="Ines", is_active=False)
        page = world.client("operator").get("/triggers/").content.decode()
        assert ("Dana" in page, "Ines" in page, "Hank" in page) == (True, False, False)
        trigger = create(world)[0]
        Trigger.objects.update(employee=None)
        page = world.client("operator").get(f"/triggers/{trigger.pk}/").content.decode()
        assert ("choose an employee" in page, "Ines" in page, "Hank" in page) == (
            True,
            False,
            False,
        )

    def test_confirm_a_saved_change(self, world: World) -> None:
        trigger, client = create(world)[0], world.client("admin")
        assert client.get(f"/triggers/{trigger.pk}/").status_code == 200
        page = client.post(
            f"/triggers/{trigger.pk}/", fill_form(world, name="Alarms", secret=""), follow=True
        )
        trigger.refresh_from_db()
        assert (trigger.name, trigger.created_by) == ("Alarms", world.users["admin"])
        assert "The trigger was saved." in page.content.decode()

    def test_can_switch_a_trigger_off_and_on(self, world: World) -> None:
        trigger, client = create(world)[0], world.client("operator")
        for form, state, address in (
            ({}, "off", "/triggers/"),
            ({"on": "1", "stay": "1"}, "on", f"/triggers/{trigger.pk}/"),
            ({"on": "", "stay": ""}, "off", "/triggers/"),
        ):
            response = client.post(f"/triggers/{trigger.pk}/switch/", form)
            trigger.refresh_from_db()
            assert (trigger.is_active, response["Location"]) == (state == "on", address)
            assert f"“Issues” is switched {state}." in client.get("/triggers/").content.decode()

    def test_show_the_new_secret_to_its_creator(self, world: World) -> None:
        client = world.client("admin")
        client.post("/triggers/new/", fill_form(world, name="First", secret=""))
        create(world, name="Second")
        assert (
            'Secret for <strong class="chip"><bdi>First</bdi></strong>'
            in client.get("/triggers/").content.decode()
        )

    def test_list_only_messages_of_the_trigger(self, world: World) -> None:
        trigger = create(world)[0]
        post(create(world, name="Other")[0], {"action": "closed", "title": "Elsewhere"})
        assert (
            "Elsewhere"
            not in world.client("viewer").get(f"/triggers/{trigger.pk}/").content.decode()
        )

    def test_do_not_link_to_more_messages_if_the_last_page_is_exactly_full(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agents.web.views.pages.PAGE_SIZE", 1)
        trigger = create(world)[0]
        world.received(trigger)
        assert (
            "Older received messages"
            not in world.client("viewer").get(f"/triggers/{trigger.pk}/").content.decode()
        )

    def test_keep_invalid_values_in_the_form(self, world: World) -> None:
        response = world.client("operator").post(
            "/triggers/new/", fill_form(world, task="{{ payload }} of Dana")
        )
        page = response.content.decode()
        assert response.status_code == 422
        assert "{{ payload }} of Dana" in page
        assert re.search(r'id="task"[^>]*aria-invalid="true"', page)
        assert SECRET not in page, "a typed secret is not sent back"

    def test_show_no_form_to_a_viewer(self, world: World) -> None:
        trigger = create(world)[0]
        for path in ("/triggers/", f"/triggers/{trigger.pk}/"):
            page = world.client("viewer").get(path).content.decode()
            assert "<form" not in page.partition("<main")[2].partition("</main>")[0]

    def test_show_the_result_of_the_last_messages(self, world: World) -> None:
        trigger = create(world)[0]
        post(trigger, {"action": "opened", "title": "Down"})
        post(trigger, {"action": "closed"})
        post(trigger, {}, proof="sha256=0")
        page = world.client("viewer").get(f"/triggers/{trigger.pk}/").content.decode()
        for words in (
            "Started a run",
            "Filtered out",
            "Refused",
            "The signature or the token is wrong",
        ):
            assert words in page
        Employee.objects.update(is_active=False)
        assert post(trigger, {"action": "opened", "title": "Down again"}).status_code == 409
        assert (
            "Dana is not active"
            in world.client("viewer").get(f"/triggers/{trigger.pk}/").content.decode()
        )

    def test_have_a_button_to_send_a_message_again(self, world: World) -> None:
        trigger = create(world)[0]
        post(trigger, {"action": "closed", "title": "Down"})
        message = ReceivedMessage.objects.get()
        response = world.client("admin").post(f"/triggers/messages/{message.pk}/again/")
        assert response["Location"] == f"/runs/{Run.objects.get().pk}/"
        assert (
            "sent again by admin"
            in world.client("viewer").get(f"/triggers/{trigger.pk}/").content.decode()
        )

    def test_continue_with_older_messages_on_further_pages(self, world: World) -> None:
        trigger = create(world)[0]
        for number in range(60):
            world.received(trigger, json.dumps({"number": number}))
        first = world.client("viewer").get(f"/triggers/{trigger.pk}/").content.decode()
        (before,) = re.findall(r"\?before=(\d+)", first)
        second = (
            world.client("viewer").get(f"/triggers/{trigger.pk}/?before={before}").content.decode()
        )
        assert (first.count("Message from outside"), second.count("Message from outside")) == (
            50,
            10,
        )


class TestTheRunOfATrigger:
    def test_shows_the_message_folded_and_labeled(self, world: World) -> None:
        post(create(world)[0], {"action": "opened", "title": HOSTILE})
        run = Run.objects.get()
        page = world.client("viewer").get(f"/runs/{run.pk}/").content.decode()
        assert "<script>alert" not in page
        assert "Message from outside" in page
        assert "by the trigger Issues on behalf of operator" in " ".join(
            re.sub("<[^>]+>", " ", page).split()
        )

    def test_has_the_message_in_its_transcripts(self, world: World) -> None:
        post(create(world)[0], {"action": "opened", "title": "Down"})
        run, client = Run.objects.get(), world.client("viewer")
        markdown = streamed(client.get(f"/runs/{run.pk}/transcript.md"))
        assert "## Message from outside" in markdown
        assert '"title": "Down"' in markdown
        stored = json.loads(streamed(client.get(f"/runs/{run.pk}/transcript.json")))
        assert stored["run"]["outside_message"] == {"action": "opened", "title": "Down"}

    def test_differs_from_other_runs_which_do_not_show_a_message_from_outside(
        self, world: World
    ) -> None:
        page = (
            world.client("viewer")
            .get(f"/runs/{world.run(RunStatus.SUCCEEDED).pk}/")
            .content.decode()
        )
        assert "Message from outside" not in page


@pytest.mark.parametrize(
    "field", ["name", "task", "header", "filter_param", "filter_value", "scheme", "repeat_hours"]
)
def test_hostile_input_stays_text_in_the_form(world: World, field: str) -> None:
    page = world.client("operator").post(
        "/triggers/new/", fill_form(world, employee="0", **{field: HOSTILE})
    )
    assert page.status_code in (404, 422)
    assert "<script>alert" not in page.content.decode()
