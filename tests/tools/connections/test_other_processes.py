"""A newly connected tool appears in the web process and the workers that are already running, but
only for its own organization."""

from __future__ import annotations

from typing import Any

import pytest

from agents.accounts.membership import issue_token
from agents.runs.models import Run, RunStatus
from tests import http
from tests.features import feature
from tests.processes import Installation
from tests.tools.connections.api import Api
from tests.tools.connections.connecting import (
    connect_api,
    grant,
    leave,
    offer,
    set_credentials,
    take,
)
from tests.workshop import (
    Workshop,
    asking,
    build_workshop,
    call,
    calls,
    error_code,
    eventually,
    statuses,
)
from tools.connections.models import AuthenticationMethod

pytestmark = pytest.mark.django_db(transaction=True)

LIST, ADD = "crm.listContacts", "crm.addContact"
FIRST, SECOND = "first-token-of-ours-01", "second-token-of-ours-02"


@pytest.fixture
def running(installation: Installation) -> Installation:
    installation.start_all()
    return installation


@feature(
    "Connected sources",
    "Changes of a source reach running processes of that organization only",
    "agents/employees/toolboxes.py",
)
def test_a_changed_toolbox_reaches_web_and_workers_without_a_restart(
    running: Installation, workshop: Workshop, api: Api
) -> None:
    globex = build_workshop("globex")
    for each in (workshop, globex):
        each.play(asking(call(LIST)))
        grant(each, LIST, ADD)
    mine, theirs = Rest(running, workshop), Rest(running, globex)
    assert (LIST in mine.tools(), LIST in theirs.tools()) == (False, False)
    assert outcome(workshop) == ("rejected", "TOOL_NOT_FOUND")

    set_credentials(workshop.organization, "crm", token=FIRST)
    source = connect_api(workshop, api, authentication=AuthenticationMethod.BEARER)
    take(source, LIST, ADD)
    assert mine.tools()[LIST]["source"] == "crm"
    assert mine.tools()[ADD]["level"] == "write"
    assert outcome(workshop) == ("succeeded", "")
    assert LIST not in theirs.tools()
    assert outcome(globex) == ("rejected", "TOOL_NOT_FOUND")

    set_credentials(workshop.organization, "crm", token=SECOND)
    assert outcome(workshop) == ("succeeded", "")
    sent = [request.headers["authorization"] for request in api.received]
    assert sent == [f"Bearer {FIRST}", f"Bearer {SECOND}"]
    for process in running.processes:
        assert FIRST not in process.output + process.name
        assert SECOND not in process.output

    leave(source, LIST)
    assert LIST not in mine.tools()
    assert ADD in mine.tools()
    assert outcome(workshop) == ("rejected", "TOOL_NOT_FOUND")


def test_sources_of_the_same_name_in_two_organizations_stay_separate(
    running: Installation, workshop: Workshop, api: Api
) -> None:
    globex = build_workshop("globex")
    with Api() as other:
        other.title = "Others"
        del other.paths["/contacts"]["post"]
        for each, its_api in ((workshop, api), (globex, other)):
            offer(each, connect_api(each, its_api), LIST)
            each.play(asking(call(LIST)))
        assert outcome(workshop) == ("succeeded", "")
        assert (len(api.received), len(other.received)) == (1, 0)
        assert outcome(globex) == ("succeeded", "")
        assert (len(api.received), len(other.received)) == (1, 1)
        mine, theirs = Rest(running, workshop).tools(), Rest(running, globex).tools()
        assert LIST in mine
        assert LIST in theirs
        assert (ADD in mine, ADD in theirs) == (False, False)


class Rest:
    """The REST API of the running web process, as a member of the organization sees it."""

    def __init__(self, installation: Installation, workshop: Workshop) -> None:
        self._url = f"{installation.url}/api/tools?limit=200"
        self._headers = {"Authorization": f"Bearer {issue_token(workshop.operator, 'test')[1]}"}

    def tools(self) -> dict[str, Any]:
        """Return the tools by name."""
        response = http.get(self._url, self._headers)
        assert response.status == 200
        return {each["name"]: each for each in response.json()["items"]}


def outcome(workshop: Workshop) -> tuple[str, str]:
    """Let a worker drive a run with one call; return the call's status and error code."""
    run = workshop.submit()
    eventually(
        lambda: Run.objects.filter(pk=run.pk, status=RunStatus.SUCCEEDED).exists(), seconds=60
    )
    (status,) = statuses(run)
    return status, error_code(calls(run)[0])
