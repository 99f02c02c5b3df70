"""Standing grants while several versions of a tool are installed."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from agents.employees.models import Grant
from agents.runs.models import CallStatus, Run
from agents.standing_grants.changes import end_changed
from agents.standing_grants.making import list_grants
from agents.standing_grants.models import StandingGrant
from agents.web.grants.terms import describe_grants
from tests.standing_grants.granting import answered, equals, grant
from tests.tools.toolbox.sample_tools import Echo
from tests.workshop import Workshop, asking, call, last_call
from tools.contract import Level
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

CHANGED = "The tool’s definition has changed."


class Send(Echo):
    """A write with several versions."""

    name = "sample.send"
    level = Level.WRITE

    class Params(BaseModel):
        text: str


@pytest.fixture(autouse=True)
def _pinned(workshop: Workshop, toolbox: Toolbox) -> None:
    toolbox.register(Send(version="1.2"))
    Grant.objects.create(employee=workshop.employee, tool=Send.name, version="1.2")


def send(workshop: Workshop) -> Run:
    workshop.play(asking(call(Send.name, text="Hi")))
    return workshop.work()


def find_end(made: StandingGrant) -> str:
    made.refresh_from_db()
    return made.ended_because


class TestAStandingGrantForAPinnedEmployee:
    def test_approves_its_calls_after_a_newer_version_is_installed(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        made = grant(workshop, Send.name, equals("text", "Hi"))
        toolbox.register(Send(version="2.0"))
        assert end_changed() == 0
        run = send(workshop)
        assert (len(answered(run)), last_call(run).version) == (1, "1.2")
        assert find_end(made) == ""

    def test_is_made_for_the_pinned_version(self, workshop: Workshop, toolbox: Toolbox) -> None:
        toolbox.register(Send(version="2.0"))
        made = grant(workshop, Send.name, equals("text", "Hi"))
        run = send(workshop)
        assert (len(answered(run)), last_call(run).status) == (1, CallStatus.SUCCEEDED)
        assert find_end(made) == ""

    def test_is_shown_in_force_beside_a_newer_version(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        grant(workshop, Send.name, equals("text", "Hi"))
        toolbox.register(Send(version="2.0", display_name="Another one"))
        listed = list_grants(workshop.organization.pk)
        (shown,) = describe_grants(workshop.organization, listed)
        assert (shown.state, shown.title) == ("", Send().title)

    def test_ends_when_its_version_is_replaced(self, workshop: Workshop, toolbox: Toolbox) -> None:
        made = grant(workshop, Send.name, equals("text", "Hi"))
        toolbox.register(Send(version="2.0"))
        toolbox.unregister("sample.send@1.2")
        assert end_changed() == 1
        assert find_end(made) == CHANGED


class TestAStandingGrantForEveryEmployee:
    def test_stays_in_force_after_a_call_of_another_version(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        toolbox.register(Send(version="2.0"))
        made = grant(workshop, Send.name, equals("text", "Hi"), employee_id=None, by=workshop.admin)
        run = send(workshop)
        assert last_call(run).status == CallStatus.AWAITING_APPROVAL, "a person decides"
        assert (find_end(made), end_changed()) == ("", 0)
        Grant.objects.filter(tool=Send.name).update(version="")
        assert len(answered(send(workshop))) == 1

    def test_is_ended_by_a_call_once_no_version_has_its_definition(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        toolbox.register(Send(version="2.0"))
        made = grant(workshop, Send.name, equals("text", "Hi"), employee_id=None, by=workshop.admin)
        toolbox.unregister("sample.send@2.0")
        toolbox.register(Send(version="2.0", description="Another one."))
        send(workshop)
        assert find_end(made) == CHANGED
