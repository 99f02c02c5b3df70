"""An employee gets no tools in a mode that is no longer used by any tool, for example after a
plugin is removed."""

import pytest

from agents.platform.refusals import Conflict
from agents.runs.engine.context import load_context
from agents.runs.models import CallStatus, Run
from tests.features import feature
from tests.runs.test_pinned_versions import count_differences
from tests.tools.toolbox.sample_tools import Echo
from tests.workshop import Workshop, asking, call, last_call
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _selling(toolbox: Toolbox) -> None:
    """Register a tool that names the mode "party"."""
    toolbox.register(Echo(name="sample.sell"), modes={"party"})


class TestALostMode:
    @feature(
        "The gate",
        "An unknown mode is an error, and gives an employee no tools",
        "tools/toolbox/permissions.py, agents/runs/actions.py",
    )
    def test_prevents_a_run_from_starting(self, workshop: Workshop, toolbox: Toolbox) -> None:
        workshop.employee.mode = "party"
        workshop.employee.save()
        assert workshop.submit().mode == "party"
        toolbox.unregister("sample.sell")
        with pytest.raises(Conflict, match="Dana's mode 'party' is no longer available"):
            workshop.submit()
        assert Run.objects.count() == 1
        assert workshop.submit(mode="general").mode == "general"

    def test_does_not_offer_tools_to_a_started_run_and_refuses_its_calls(
        self, workshop: Workshop, toolbox: Toolbox
    ) -> None:
        workshop.play(asking(call("data.searchRecords")))
        run = workshop.submit(mode="party")
        assert "data.searchRecords" in {tool.name for tool in load_context(run.pk).tools}
        toolbox.unregister("sample.sell")
        assert load_context(run.pk).tools == []
        workshop.drive(run)
        assert last_call(run).status == CallStatus.REJECTED
        assert last_call(run).why == "There is no mode 'party', so no tool can be used."
        assert count_differences(workshop.organization) == 0
