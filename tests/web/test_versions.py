"""Pages while two versions of a tool are installed and an employee is pinned to the older
version."""

from __future__ import annotations

import pytest

from agents.employees.models import Grant
from agents.insight.suggestions import find_suggestions
from agents.runs.models import ApprovalStatus, ToolCall
from tests.web.granting import decide, read_inputs, read_page, waiting_card
from tests.workshop.fixtures import toolbox  # noqa: F401
from tests.world import SEARCH, UPDATE, World, change
from tools.contract import NoParams, Tool
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db


def pin(world: World, toolbox: Toolbox, name: str) -> Tool:  # noqa: F811
    """Register version 2.0 of the tool, without params, and pin the employee to version 1.0; return
    the newer version."""
    older = toolbox.get_tool(name)
    assert older is not None
    newer = type(older)()
    newer.version, newer.Params = "2.0", NoParams
    toolbox.register(newer)
    Grant.objects.filter(employee=world.employee, tool=name).update(version="1.0")
    return newer


class TestTheCatalog:
    def test_shows_each_version_with_its_number_its_page_and_its_users(
        self,
        world: World,
        toolbox: Toolbox,  # noqa: F811
    ) -> None:
        pin(world, toolbox, SEARCH)
        html = read_page(world.client("operator"), "/tools/?q=" + SEARCH)
        for version, users, forms in (("1.0", 1, 1), ("2.0", 0, 0)):
            path = f"/tools/{SEARCH}@{version}/"
            shown = html.partition(f">version {version}</span>")[2].partition("</details></li>")[0]
            assert (shown.count(">Dana</a>"), shown.count("Try it")) == (users, forms)
            assert f'href="{path}"' in shown
            page = read_page(world.client("operator"), path)
            assert (page.count('class="tool surface"'), f"{SEARCH}@{version}" in page) == (1, True)
        for other in (f"/search/?q={SEARCH}", f"/employees/{world.employee.pk}/"):
            assert f'href="/tools/{SEARCH}@1.0/"' in read_page(world.client("operator"), other)

    def test_runs_a_trial_with_the_version_to_which_the_employee_is_pinned(
        self,
        world: World,
        toolbox: Toolbox,  # noqa: F811
    ) -> None:
        pin(world, toolbox, SEARCH)
        path = f"/tools/{SEARCH}@1.0/try/"
        client, sent = world.client("operator"), {"employee": world.employee.pk}
        refused = client.post(path, {**sent, "param.limit": "many"})
        assert refused.status_code == 422
        assert "is not a whole number" in refused.content.decode()
        assert client.post(path, {**sent, "param.limit": "7"}).status_code == 302
        assert ToolCall.objects.get().version == "1.0"


class TestAStandingGrantForAPinnedEmployee:
    def test_is_suggested_from_cards_of_its_version(self, world: World, toolbox: Toolbox) -> None:  # noqa: F811
        for number in range(5):
            card = waiting_card(world, **change(world.records[0], f"+1 555 010{number % 2}"))
            decide(world, card, ApprovalStatus.CONSUMED)
        pin(world, toolbox, UPDATE)
        (found,) = find_suggestions(world.member("approver"))
        assert found.tool.version == "1.0"
        Grant.objects.filter(employee=world.employee).update(version="")
        assert find_suggestions(world.member("approver")) == []

    def test_is_created_with_a_form_that_has_the_params_of_the_pinned_version(
        self,
        world: World,
        toolbox: Toolbox,  # noqa: F811
    ) -> None:
        pin(world, toolbox, UPDATE)
        client, path = world.client("approver"), f"/grants/new/?tool={UPDATE}"
        page = read_page(client, f"{path}&employee={world.employee.pk}")
        assert "record_id" in read_inputs(page)["path"]
        assert read_inputs(read_page(client, path))["path"] == []

    def test_has_its_tool_once_in_the_list_of_tools(self, world: World, toolbox: Toolbox) -> None:  # noqa: F811
        pin(world, toolbox, UPDATE)
        page = read_page(world.client("approver"), "/grants/")
        assert page.count(f'<option value="{UPDATE}">') == 1
