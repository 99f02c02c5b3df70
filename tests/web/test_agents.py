"""The pages about agents: keys that are shown once, levels of actions, and asks."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from agents.accounts.models import AuditEntry
from agents.employees.models import Employee, ToolRule
from agents.gateway.asks import AskedRequest, submit
from agents.gateway.models import AgentKey, RefusedAsk
from agents.runs.models import Approval, ToolCall
from tests.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.once]

NEW_KEY = {"name": "My laptop", "days": "30"}


def text_of(response: Any) -> str:
    """Return the text of a page, in one line."""
    return " ".join(re.sub("<[^>]+>", " ", response.content.decode()).split())


def create_key(world: World, who: str = "operator", **more: str) -> str:
    """Create an agent key with the form, and return the HTML of the page that shows it."""
    client = world.client(who)
    response = client.post(
        "/agents/", {**NEW_KEY, "employee": str(world.employee.pk), **more}, follow=True
    )
    return response.content.decode()


class TestAgentKeysOnPages:
    def test_are_shown_once(self, world: World) -> None:
        client = world.client("operator")
        created = client.post("/agents/", {**NEW_KEY, "employee": str(world.employee.pk)})
        assert (created.status_code, created["Location"]) == (302, "/agents/")
        page = client.get("/agents/").content.decode()
        assert page.count("gadget_agent_") >= 1
        assert '"Authorization": "Bearer gadget_agent_' in page.replace("&quot;", '"')
        assert "gadget_agent_" not in client.get("/agents/").content.decode()

    def test_cannot_be_created_by_a_viewer_who_does_not_see_the_form(self, world: World) -> None:
        assert "New key" not in text_of(world.client("viewer").get("/agents/"))
        assert (
            world.client("viewer").post("/agents/", {**NEW_KEY, "employee": "1"}).status_code == 403
        )

    @pytest.mark.parametrize(
        "more", [{"name": ""}, {"days": "0"}, {"days": "x"}, {"days": "²"}, {"days": "9" * 5_000}]
    )
    def test_with_an_invalid_field_are_refused_with_an_error_text(
        self, world: World, more: dict[str, str]
    ) -> None:
        client = world.client("operator")
        response = client.post("/agents/", {**NEW_KEY, "employee": str(world.employee.pk), **more})
        assert response.status_code == 422
        assert 'role="alert"' in response.content.decode()
        assert not AgentKey.objects.exists()

    def test_for_an_employee_of_another_organization_are_refused(self, world: World) -> None:
        data = {**NEW_KEY, "employee": str(world.others_employee.pk)}
        assert world.client("operator").post("/agents/", data).status_code == 404

    @pytest.mark.parametrize("employee", ["", "0", "x"])
    def test_without_an_employee_are_refused(self, world: World, employee: str) -> None:
        response = world.client("operator").post("/agents/", {**NEW_KEY, "employee": employee})
        assert (response.status_code, AgentKey.objects.count()) == (404, 0)

    def test_can_be_created_for_active_employees_only_and_a_refused_form_keeps_the_name(
        self, world: World
    ) -> None:
        provider = world.employee.provider
        Employee.objects.create(
            organization=world.acme, name="Ines", provider=provider, is_active=False
        )
        client = world.client("operator")
        page = client.get("/agents/").content.decode()
        assert ("Dana" in page, "Ines" in page, "Hank" in page) == (True, False, False)
        assert 'value="Laptop 2"' not in page
        response = client.post(
            "/agents/", {"name": "Laptop 2", "days": "0", "employee": str(world.employee.pk)}
        )
        assert 'value="Laptop 2"' in response.content.decode()

    def test_are_listed_with_their_state(self, world: World) -> None:
        for name in ("good", "revoked one", "old", "of nobody"):
            create_key(world, "approver" if name == "of nobody" else "operator", name=name)
        key = AgentKey.objects.get(name="revoked one")
        world.client("admin").post(f"/agents/{key.pk}/revoke/")
        AgentKey.objects.filter(name="old").update(expires_at=Now() - timedelta(days=1))
        world.member("approver").delete()
        page = text_of(world.client("admin").get("/agents/"))
        for name, state in (
            ("good", "active"),
            ("revoked one", "revoked"),
            ("old", "expired"),
            ("of nobody", "member lost access"),
        ):
            assert re.search(rf"{name} …\S+ as Dana(, on behalf of \w+)? {state} ", page), name

    def test_are_shown_to_their_creator_even_after_another_person_created_a_key(
        self, world: World
    ) -> None:
        client = world.client("admin")
        client.post("/agents/", {**NEW_KEY, "name": "First", "employee": str(world.employee.pk)})
        create_key(world, name="Second")
        assert "Key for First" in text_of(client.get("/agents/"))

    @pytest.mark.parametrize(
        ("form", "status"), [({}, "cancelled"), ({"keeps_open": "1"}, "awaiting_approval")]
    )
    def test_are_revoked_with_their_open_calls_unless_an_admin_keeps_the_calls(
        self, world: World, form: dict[str, str], status: str
    ) -> None:
        ask = world.ask()
        world.client("admin").post(f"/agents/{ask.key_id}/revoke/", form)
        assert ToolCall.objects.get(run=ask.run).status == status

    def test_are_listed_for_their_member_and_for_admins(self, world: World) -> None:
        create_key(world)
        assert "My laptop" in text_of(world.client("admin").get("/agents/"))
        assert "My laptop" not in text_of(world.client("approver").get("/agents/"))

    def test_can_be_revoked_and_only_admins_can_choose_to_keep_open_calls(
        self, world: World
    ) -> None:
        create_key(world)
        key = AgentKey.objects.get()
        assert "Keep open calls" not in text_of(world.client("operator").get("/agents/"))
        assert "Keep open calls" in text_of(world.client("admin").get("/agents/"))
        response = world.client("operator").post(f"/agents/{key.pk}/revoke/", follow=True)
        assert "The key “My laptop” no longer works." in text_of(response)
        assert "revoked" in text_of(response)


class TestLevelsOnPages:
    def test_can_be_set_by_an_admin(self, world: World) -> None:
        client = world.client("admin")
        response = client.post(
            "/agents/levels/", {"action": "deploy.production", "level": "write"}, follow=True
        )
        assert "“deploy.production” now has the level write." in text_of(response)
        assert ToolRule.objects.get(tool="ask/deploy.production").level == "write"
        client.post("/agents/levels/", {"action": "deploy.production", "level": "draft"})
        assert ToolRule.objects.get(tool="ask/deploy.production").level == "draft"
        assert AuditEntry.objects.filter(action="action_level_set").count() == 2

    @pytest.mark.parametrize(
        "form", [{"action": "rm -rf /", "level": "write"}, {"action": "x", "level": "harmless"}]
    )
    def test_invalid_levels_are_refused(self, world: World, form: dict[str, str]) -> None:
        response = world.client("admin").post("/agents/levels/", form)
        assert (response.status_code, ToolRule.objects.count()) == (422, 0)

    def test_are_destructive_by_default_for_requested_actions(self, world: World) -> None:
        world.ask()
        assert "deploy destructive (no level set)" in text_of(world.client("admin").get("/agents/"))


class TestAsksOnPages:
    def test_are_listed_with_their_state(self, world: World) -> None:
        ask = world.ask()
        page = text_of(world.client("viewer").get("/agents/asks/"))
        assert "deploy" in page
        assert "waiting" in page
        card = Approval.objects.get(run=ask.run)
        assert (
            f"/approvals/{card.pk}/" in world.client("viewer").get("/agents/asks/").content.decode()
        )

    def test_are_not_shown_to_another_organization(self, world: World) -> None:
        world.ask()
        assert "deploy" not in text_of(world.client("outsider").get("/agents/asks/"))

    def test_continue_on_further_pages(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("agents.web.views.pages.PAGE_SIZE", 2)
        key = world.ask().key
        second = submit(key, AskedRequest("second", {}, "write"))[0]
        client = world.client("viewer")
        assert "Older requests" not in text_of(client.get("/agents/asks/"))
        submit(key, AskedRequest("third", {}, "write"))
        newest = client.get("/agents/asks/").content.decode()
        assert f'href="?before={second.pk}"' in newest
        assert ("third" in newest, "second" in newest, "deploy" in newest) == (True, True, False)
        older = text_of(client.get(f"/agents/asks/?before={second.pk}"))
        assert ("second" in older, "deploy" in older) == (False, True)

    def test_say_if_an_agent_asked_for_the_same_effect_again_and_was_refused(
        self, world: World
    ) -> None:
        first = world.ask()
        second = submit(first.key, AskedRequest("refund", {}, "write"))[0]
        RefusedAsk.objects.create(ask=second, key=first.key, params={})
        page = text_of(world.client("viewer").get("/agents/asks/"))
        assert page.count("Laptop also asked about this effect") == 1
        assert page.index("refund") < page.index("also asked") < page.index("deploy")

    def test_quote_the_agents_text_and_attribute_it_to_the_agent(self, world: World) -> None:
        sentence, effect = "Deploy <b>the shop</b>", "The site restarts."
        ask = submit(world.ask().key, AskedRequest("restart", {}, "write", sentence, effect))[0]
        card = Approval.objects.get(run=ask.run)
        page = world.client("approver").get(f"/approvals/{card.pk}/").content.decode()
        (quote,) = re.findall(
            r'<blockquote class="employee-words">(.*?)</blockquote>', page, flags=re.DOTALL
        )
        assert "Deploy &lt;b&gt;the shop&lt;/b&gt;" in quote
        assert "The agent’s own words, <b>not verified</b>" in quote
        assert "The site restarts." in page

    def test_have_a_run_page_without_a_form_for_messages(self, world: World) -> None:
        run = world.ask().run
        page = text_of(world.client("operator").get(f"/runs/{run.pk}/"))
        assert "an agent elsewhere, no model" in page
        assert "Message" not in page
