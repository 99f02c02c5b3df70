"""Requests to a source carry the organization's newest credentials, which do not appear anywhere
else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from agents.accounts.models import AuditEntry, Credential
from agents.employees.sources import check_source, refresh_source
from agents.employees.toolboxes import (
    bump_credentials_version,
    get_installed_toolbox,
    load_credentials,
)
from agents.runs.models import Approval, Event, Message, Pass, Run, RunStatus, ToolCall
from agents.web.panel.transcript import JsonTranscript, MarkdownTranscript, read_entries
from tests.features import feature
from tests.model_server import Call, ModelServer, Response
from tests.tools.connections.api import Api
from tests.tools.connections.connecting import connect_api, offer, read, set_credentials
from tests.tools.mcp_servers.http_server import OlderServer, older_server
from tests.workshop import Workshop, asking, call, calls, error_code, statuses
from tools.connections.changes import allow_private
from tools.connections.models import AuthenticationMethod, Source, SourceKind, SourceTool
from tools.contract import Environment, Level

pytestmark = pytest.mark.django_db(transaction=True)

ADD, LIST = "crm.addContact", "crm.listContacts"
FIRST, SECOND = "first-token-of-ours-01", "second-token-of-ours-02"
INSTALLATION = "token-of-the-installation"


@pytest.fixture
def source(workshop: Workshop, api: Api) -> Source:
    source = connect_api(
        workshop, api, authentication=AuthenticationMethod.BEARER, service="contacts"
    )
    offer(workshop, source, ADD, LIST)
    return source


def test_a_changed_token_is_used_by_the_next_call(
    workshop: Workshop, api: Api, source: Source
) -> None:
    workshop.play(asking(call(LIST)))
    for token in (FIRST, SECOND):
        set_credentials(workshop.organization, "contacts", token=token)
        assert statuses(workshop.work()) == ["succeeded"]
    sent = [request.headers["authorization"] for request in api.received]
    assert sent == [f"Bearer {FIRST}", f"Bearer {SECOND}"]


def test_a_token_changed_while_a_card_is_open_keeps_the_card_valid(
    workshop: Workshop, api: Api, source: Source
) -> None:
    set_credentials(workshop.organization, "contacts", token=FIRST)
    workshop.play(asking(call(ADD, name="Ada")))
    run = workshop.work()
    set_credentials(workshop.organization, "contacts", token=SECOND)
    workshop.approve(workshop.card(run))
    assert statuses(workshop.drive(run)) == ["succeeded"]
    assert [request.headers["authorization"] for request in api.received] == [f"Bearer {SECOND}"]


def test_a_call_without_a_token_is_not_sent_and_names_the_service(
    workshop: Workshop, api: Api, source: Source
) -> None:
    workshop.play(asking(call(LIST)))
    run = workshop.work()
    assert error_code(calls(run)[0]) == "UNAUTHORIZED"
    assert "'contacts'" in calls(run)[0].content
    assert api.received == []


@feature(
    "Connected sources",
    "A changed token is used by the next call, and appears in no row, prompt, page or log",
    "tools/connections/servers.py",
)
def test_the_token_never_appears_in_rows_prompts_pages_transcripts_or_logs(
    workshop: Workshop, api: Api, source: Source, model: ModelServer, lines: list[str]
) -> None:
    """The API repeats the token in every response and in its description."""
    set_credentials(workshop.organization, "contacts", token=FIRST)
    api.answer = {"you said": f"Bearer {FIRST}", FIRST: [FIRST]}
    model.script(
        Response(calls=(Call(LIST.replace(".", "__"), {}),)),
        Response(calls=(Call(ADD.replace(".", "__"), {"name": "Ada"}),)),
        Response(text="Done."),
    )
    run = workshop.work()
    assert run.status == RunStatus.WAITING
    workshop.approve(workshop.card(run))
    run = workshop.drive(run)
    assert statuses(run) == ["succeeded", "succeeded"]
    assert [request.headers["authorization"] for request in api.received] == [f"Bearer {FIRST}"] * 2
    asked = check_source(read(source))
    kinds = (ToolCall, Event, Approval, Pass, Message, AuditEntry, Run, SourceTool, Source)
    entries = read_entries(run.pk, 0, run.next_event_seq, set())
    places = {
        "rows": "".join(str(list(kind.objects.values())) for kind in kinds),
        "prompts": json.dumps(model.requests),
        "transcript": "".join(
            form.write_entry(entry)
            for form in (JsonTranscript(), MarkdownTranscript())
            for entry in entries
        ),
        "pages": "".join(pages_of(workshop, run)),
        "log": "\n".join(lines),
        "test": str(asked),
    }
    for place, text in places.items():
        assert FIRST not in text, place
        assert text, place
    assert "[hidden]" in places["prompts"]
    assert "you said" in places["pages"]


class TestInstallationCredentials:
    """An organization's admin chooses the source's address, which may be the admin's own server, so
    the installation's credentials must not be sent there."""

    @pytest.fixture
    def installation(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            get_installed_toolbox(), "environment", Environment({"github": {"token": INSTALLATION}})
        )

    @feature(
        "Connected sources",
        "Sources of an organization never get the installation's credentials",
        "tools/connections/connected_tools.py, agents/employees/toolboxes.py",
    )
    def test_are_not_sent_to_an_api(self, workshop: Workshop, api: Api, installation: None) -> None:
        assert load_credentials(workshop.organization)["github"]["token"] == INSTALLATION
        offer(
            workshop,
            connect_api(
                workshop, api, authentication=AuthenticationMethod.BEARER, service="github"
            ),
            LIST,
        )
        workshop.play(asking(call(LIST)))
        assert error_code(calls(workshop.work())[0]) == "UNAUTHORIZED"
        set_credentials(workshop.organization, "other", token=FIRST)
        assert error_code(calls(workshop.work())[0]) == "UNAUTHORIZED"
        assert api.received == []
        set_credentials(workshop.organization, "github", token=FIRST)
        assert statuses(workshop.work()) == ["succeeded"]
        assert [request.headers["authorization"] for request in api.received] == [f"Bearer {FIRST}"]

    def test_are_not_sent_to_an_mcp_server(self, workshop: Workshop, installation: None) -> None:
        with older_server() as server:
            source = connect_server(workshop, server, service="github")
            assert "The credentials for 'github' are incomplete: token is missing." in str(
                refresh_source(source).problem
            )
            assert server.asked == []
            set_credentials(workshop.organization, "github", token=FIRST)
            offer(workshop, read(source), "pets.save", level=Level.READ)
            Credential.objects.all().delete()
            bump_credentials_version(workshop.organization.pk)
            asked = len(server.asked)
            workshop.play(asking(call("pets.save")))
            assert statuses(workshop.work()) == ["rejected"]
            assert len(server.asked) == asked


@feature(
    "Connected sources",
    "Text of an MCP server that contains its credentials is not stored",
    "tools/connections/descriptions.py",
)
@pytest.mark.parametrize("behavior", ["echoes", "refuses"])
def test_a_token_echoed_by_the_server_is_not_stored(workshop: Workshop, behavior: str) -> None:
    set_credentials(workshop.organization, "pets", token=FIRST)
    with older_server() as server:
        source = connect_server(workshop, server, behavior)
        asked = refresh_source(source)
    rows = str([*Source.objects.values(), *SourceTool.objects.values()])
    assert FIRST not in rows + str(asked)
    assert "[hidden]" in (rows if behavior == "echoes" else str(asked))
    assert {row.tool for row in SourceTool.objects.all()} == (
        {"pets.save"} if behavior == "echoes" else set()
    )


def connect_server(
    workshop: Workshop, server: OlderServer, behavior: str = "works", **more: Any
) -> Source:
    """Return a connected MCP server that has not been read yet."""
    values = {
        "address": server.url(behavior),
        "authentication": AuthenticationMethod.BEARER,
        **more,
    }
    kind = SourceKind.MCP_HTTP
    source = Source.objects.create(
        organization=workshop.organization, kind=kind, name="pets", **values
    )
    allow_private(source)
    return source


def pages_of(workshop: Workshop, run: Run) -> Iterator[str]:
    client = Client()
    client.force_login(workshop.admin.user)
    addresses = [
        reverse("run", args=(run.pk,)),
        reverse("tools"),
        "/api/tools?limit=200",
        f"/api/runs/{run.pk}",
    ]
    addresses += [reverse("call", args=(run.pk, each.pk)) for each in calls(run)]
    addresses += [reverse("approval", args=(card.pk,)) for card in Approval.objects.filter(run=run)]
    for address in addresses:
        response = client.get(address)
        assert response.status_code == 200, address
        yield response.content.decode()
