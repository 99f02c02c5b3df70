"""An employee that is pinned to a version of a tool keeps it when a newer version is registered."""

from __future__ import annotations

import pytest

from agents.accounts.models import Organization
from agents.approval_rules.models import ApprovalRule
from agents.employees.models import Grant
from agents.policy.recorded_calls import CallFilter
from agents.policy.replay import find_bounds, replay
from agents.runs.engine.context import load_context
from agents.runs.models import ApprovalStatus, CallStatus, Run
from tests.features import feature
from tests.tools.toolbox.sample_tools import Echo
from tests.workshop import Workshop, again, asking, call, last_call
from tools.contract import Level
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

SAY = asking(call(Echo.name, text="Hi"))


class Send(Echo):
    """The older version of a write."""

    name = "sample.send"
    level = Level.WRITE


class SendElsewhere(Send):
    """The newer version, in another category."""

    version = "2.0"

    @property
    def category(self) -> str:
        return "elsewhere"


@pytest.fixture(autouse=True)
def _two_versions(workshop: Workshop, toolbox: Toolbox) -> None:
    for tool in (Echo(version="1.2"), Send(version="1.2")):
        toolbox.register(tool)
        Grant.objects.create(employee=workshop.employee, tool=tool.name, version="1.2")


def find_offered(run: Run) -> dict[str, str]:
    return {
        tool.name: tool.version
        for tool in load_context(run.pk).tools
        if tool.name.startswith("sample.")
    }


def count_differences(organization: Organization) -> int:
    """Replay all recorded calls by the rules that applied when they were recorded; return the
    number of verdicts that differ."""
    bounded = find_bounds(CallFilter(organization.pk), None)
    return sum(len(part.differences) for part in (replay(bounded) if bounded else ()))


class TestAPinnedVersion:
    @feature(
        "The gate",
        "An employee can be pinned to a version of a tool, and keeps it when a newer one is registered",
        "tools/toolbox/toolbox.py, agents/employees/models/employee.py",
    )
    def test_is_offered_and_used_when_a_newer_version_is_registered(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        toolbox.register(Echo(version="2.0", description="Another one."))
        workshop.play(SAY)
        run = workshop.submit()
        assert find_offered(run) == {"sample.echo": "1.2", "sample.send": "1.2"}
        workshop.drive(run)
        assert (last_call(run).version, last_call(run).status) == ("1.2", CallStatus.SUCCEEDED)
        Grant.objects.update(version="")
        assert find_offered(run)["sample.echo"] == "2.0"
        assert last_call(workshop.work()).version == "2.0"
        assert count_differences(workshop.organization) == 0

    def test_excludes_other_versions_even_by_their_id(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        toolbox.register(Echo(version="2.0"))
        workshop.play(asking(call("sample.echo@2.0", text="Hi")))
        run = workshop.work()
        assert last_call(run).status == CallStatus.REJECTED
        assert last_call(run).why == "You may use the tool 'sample.echo' only in version 1.2."
        assert count_differences(workshop.organization) == 0

    def test_is_not_replaced_by_the_newest_version_if_it_is_not_installed(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        toolbox.register(Echo(version="2.0"))
        toolbox.unregister("sample.echo@1.2")
        workshop.play(SAY)
        run = workshop.submit()
        assert find_offered(run) == {"sample.send": "1.2"}
        workshop.drive(run)
        expected = (
            "The tool 'sample.echo' is not installed in version 1.2, the only one that you may use."
        )
        assert (last_call(run).status, last_call(run).why) == (CallStatus.REJECTED, expected)
        assert count_differences(workshop.organization) == 0

    def test_keeps_its_open_card_when_a_newer_version_is_registered(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        workshop.play(asking(call(Send.name, text="Hi")))
        run = workshop.work()
        toolbox.register(Send(version="2.0", description="Another one."))
        workshop.approve(workshop.card(run))
        workshop.drive(run)
        assert (last_call(run).version, last_call(run).status) == ("1.2", CallStatus.SUCCEEDED)

    def test_follows_the_approval_rules_for_its_category_even_if_a_newer_version_has_another(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        ApprovalRule.objects.create(
            organization=workshop.organization, name="Two people", needed=2, category="sample"
        )
        toolbox.register(SendElsewhere())
        workshop.play(asking(call(Send.name, text="Hi")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        (card,) = workshop.cards(run)
        assert card.status == ApprovalStatus.PENDING, "one more person approves it"

    @pytest.mark.parametrize("version", ["2.0", ""])
    def test_needs_a_new_approval_if_its_pin_is_changed_or_removed_after_the_approval(
        self, workshop: Workshop, toolbox: Toolbox, version: str
    ) -> None:
        workshop.play(asking(call(Send.name, text="Hi")))
        run = workshop.work()
        toolbox.register(Send(version="2.0", description="Another one."))
        first = workshop.card(run)
        workshop.approve(first)
        Grant.objects.filter(tool=Send.name).update(version=version)
        workshop.drive(run)
        assert last_call(run).status == CallStatus.AWAITING_APPROVAL
        (card,) = workshop.cards(run)
        assert card.pk != first.pk
        assert card.status == ApprovalStatus.PENDING
        workshop.approve(card)
        workshop.drive(again(run))
        assert (last_call(run).version, last_call(run).status) == ("2.0", CallStatus.SUCCEEDED)
