"""The context of a call: the facts that a run passes to its tools."""

from typing import Any

import pytest
from pytest_django import Settings

from agents.accounts.preferences import save_preferences
from agents.employees.models import Grant
from agents.notices.choices import save_time_zone
from agents.runs.models import CallStatus
from gadget_site.settings_table import SiteSettings
from tests.context_probes import Describe, DescribeInLoop
from tests.features import feature
from tests.workshop import Workshop, asking, call, calls, data_of, last_call, statuses

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _granted(workshop: Workshop) -> None:
    for probe in (Describe, DescribeInLoop):
        Grant.objects.create(employee=workshop.employee, tool=probe.name)


def describe(workshop: Workshop) -> dict[str, Any]:
    """Run the probe and return its description of the context."""
    workshop.play(asking(call(Describe.name)))
    facts: dict[str, Any] = data_of(last_call(workshop.work()))
    return facts


class TestTheContextOfACall:
    def test_contains_the_organization_the_mode_and_a_logger(
        self, workshop: Workshop, caplog: pytest.LogCaptureFixture
    ) -> None:
        facts = describe(workshop)
        assert facts["organization_name"] == workshop.organization.name
        assert facts["mode"] == "general"
        (logger,) = [
            each.name for each in caplog.records if each.message == "Described its context"
        ]
        assert logger == "gadget.tools"

    @feature(
        "Tool contract",
        "A tool learns whether it runs in development or production",
        "tools/contract/context.py",
    )
    @pytest.mark.parametrize(("debug", "name"), [("on", "development"), ("off", "production")])
    def test_contains_the_environment(
        self, workshop: Workshop, settings: Settings, debug: str, name: str
    ) -> None:
        settings.GADGET_ENVIRONMENT = SiteSettings(
            {"DEBUG": debug}, settings.BASE_DIR
        ).environment_name
        assert describe(workshop)["environment"] == name

    @feature(
        "Tool contract",
        "A tool learns the language, time zone and units that the person of the run has chosen",
        "agents/accounts/preferences.py, agents/web/views/preferences.py",
    )
    def test_contains_the_preferences_of_the_person_who_started_the_run(
        self, workshop: Workshop
    ) -> None:
        assert describe(workshop)["preferences"] == {}
        save_preferences(workshop.operator, "de-CH", "metric")
        save_time_zone(workshop.operator, "Europe/Zurich")
        save_preferences(workshop.approver, "fr", "imperial")
        expected = {"language": "de-CH", "units": "metric", "time_zone": "Europe/Zurich"}
        assert describe(workshop)["preferences"] == expected

    @feature(
        "Tool contract",
        "An async tool reads its whole context, preferences and inner calls too",
        "agents/platform/database_threads.py",
    )
    def test_can_be_read_completely_in_an_async_tool(self, workshop: Workshop) -> None:
        save_preferences(workshop.operator, "de-CH", "metric")
        workshop.play(asking(call(DescribeInLoop.name)))
        run = workshop.work()
        assert statuses(run) == [CallStatus.SUCCEEDED] * 2
        facts, child = data_of(calls(run)[0]), last_call(run)
        assert facts["preferences"] == {"language": "de-CH", "units": "metric"}
        assert facts["inner"]["data"]["preferences"] == facts["preferences"]
        assert facts["earlier"]["data"] == facts["inner"]["data"] == data_of(child)
        assert run.session == {"seen": True}

    def test_can_be_read_in_an_async_tool_that_calls_an_unknown_tool(
        self, workshop: Workshop
    ) -> None:
        workshop.play(asking(call(DescribeInLoop.name, inner="no.such")))
        facts = data_of(last_call(workshop.work()))
        assert facts["inner"]["error"]["code"] == "TOOL_NOT_FOUND"
