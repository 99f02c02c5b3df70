"""The tools of a deleted source are deleted with it; their past calls stay visible."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from agents.accounts.models import Organization
from agents.employees.toolboxes import load_toolbox
from agents.runs.models import Approval
from tests.features import feature
from tests.tools.connections.api import Api
from tests.tools.connections.connecting import connect_api, offer
from tests.workshop import Workshop, asking, call, calls, statuses
from tools.connections.changes import bump_tools_version
from tools.connections.models import SourceTool

pytestmark = pytest.mark.django_db(transaction=True)

ADD, LIST = "crm.addContact", "crm.listContacts"


@feature(
    "Connected sources",
    "Old runs and cards of a deleted source can still be viewed",
    "tools/connections/models.py",
)
def test_old_runs_and_open_cards_still_have_their_pages(workshop: Workshop, api: Api) -> None:
    source = connect_api(workshop, api)
    offer(workshop, source, ADD, LIST)
    workshop.play(asking(call(LIST)), asking(call(ADD, name="Ada")))
    done, waiting = workshop.work(), workshop.work()
    workshop.approve(workshop.card(done))
    assert statuses(workshop.drive(done)) == ["succeeded", "succeeded"]
    bump_tools_version(source.organization_id)
    source.delete()
    client = Client()
    client.force_login(workshop.admin.user)
    Organization.objects.get(pk=workshop.organization.pk)
    assert not SourceTool.objects.exists()
    assert load_toolbox(workshop.organization.pk).get_tool(ADD) is None
    for run in (done, waiting):
        addresses = [
            f"/runs/{run.pk}/",
            f"/runs/{run.pk}/transcript.md",
            f"/runs/{run.pk}/transcript.json",
        ]
        addresses += [f"/api/runs/{run.pk}", f"/api/runs/{run.pk}/events", "/approvals/", "/tools/"]
        addresses += [reverse("call", args=(run.pk, each.pk)) for each in calls(run)]
        addresses += [
            reverse("approval", args=(card.pk,)) for card in Approval.objects.filter(run=run)
        ]
        addresses += [reverse("card", args=(card.pk,)) for card in Approval.objects.filter(run=run)]
        addresses += [reverse("employee", args=(run.employee_id,))]
        for address in addresses:
            assert client.get(address).status_code == 200, address
    workshop.deny(workshop.card(waiting))
