"""Only tools get the organization's credentials, which replace the installation's credentials."""

from __future__ import annotations

import json
import logging
import subprocess
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from pydantic import BaseModel
from pytest_django import Settings

from agents.accounts.models import AuditEntry, Credential, Organization
from agents.employees.models import Grant
from agents.employees.toolboxes import bump_credentials_version, load_credentials
from agents.gateway.requests import ToolRequest, record_request
from agents.gateway.tickets import load_ticket
from agents.mcp_server.call_responses import build_call_response, describe_tool
from agents.platform.known_secrets import KNOWN_SECRETS
from agents.runs.engine.context import load_context
from agents.runs.models import Approval, Event, Message, Pass, Run, RunStatus, ToolCall
from agents.web.panel.transcript import JsonTranscript, MarkdownTranscript, read_entries
from gadget_site.logs import HIDDEN
from tests.features import feature
from tests.gateway.conftest import make_key
from tests.model_server import Call, ModelServer, Response
from tests.workshop import Workshop, again, asking, call, error_code, last_call
from tools.caches import clear_caches
from tools.contract import (
    ErrorCode,
    Level,
    Preview,
    Target,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
)
from tools.toolbox.toolbox import Toolbox

SHARED = "shared-marker-0001"
OWN = "own-marker-0002-<&>'"
OTHERS = "others-marker-0003"
logger = logging.getLogger("tests.credentials")


class Asked(BaseModel):
    service: str = "github"
    how: str = "tell"


class Babbler(Tool):
    """A tool that leaks its credentials everywhere: progress, data, markdown, metadata, errors, log
    and card."""

    name = "probe.babble"
    description = "Says its credentials."
    level = Level.READ
    Params = Asked

    def execute(self, params: Asked, context: ToolContext) -> ToolResult:
        token = context.credentials[params.service]["token"]
        logger.debug("asks with %s", token)
        context.progress(0.5, f"with {token}")
        if params.how == "refuse":
            raise ToolError(ErrorCode.UNAUTHORIZED, f"{token} was refused.")
        if params.how == "break":
            raise ValueError(f"broken by {token}")
        return ToolResult.ok(
            {"token": token, token: 1}, f"Used {token}", f"# {token}", source=token
        )

    def preview(self, params: Asked, context: ToolContext) -> Preview:
        token = context.credentials[params.service]["token"]
        return Preview("update", (Target("1", token, 1, {"key": token}, {token: "new"}),))


class BabblingWrite(Babbler):
    name = "probe.babbleWrite"
    level = Level.WRITE


@pytest.fixture
def babble(workshop: Workshop, toolbox: Toolbox) -> Workshop:
    for tool in (Babbler(), BabblingWrite()):
        toolbox.register(tool)
        Grant.objects.create(employee=workshop.employee, tool=tool.name)
    return workshop


def keep(organization: Organization, service: str, **fields: str) -> None:
    """Store credentials as the admin does."""
    with transaction.atomic():
        known = Credential.objects.filter(organization=organization, service=service)
        if not known.update(fields=json.dumps(fields)):
            Credential.objects.create(
                organization=organization, service=service, fields=json.dumps(fields)
            )
        bump_credentials_version(organization.pk)
    organization.refresh_from_db()


def given(workshop: Workshop) -> dict[str, dict[str, str]]:
    organization = Organization.objects.get(pk=workshop.organization.pk)
    return {service: dict(fields) for service, fields in load_credentials(organization).items()}


@pytest.mark.parametrize("how", ["tell", "refuse", "break"])
@pytest.mark.usefixtures("babble")
def test_an_external_agent_cannot_read_credentials(
    workshop: Workshop, toolbox: Toolbox, how: str
) -> None:
    keep(workshop.organization, "github", token=OWN)
    agent = make_key(workshop)
    call = record_request(agent, None, ToolRequest(Babbler.name, {"how": how}))
    workshop.drive(call.run)
    ticket = load_ticket(call.pk)
    assert ticket.has_ended
    answer = build_call_response(ticket, "https://gadget.example.com").model_dump_json()
    described = "".join(
        describe_tool(tool, ()).model_dump_json() for tool in toolbox.tools_by_id.values()
    )
    assert "github" in described
    assert not [text for text in (OWN, "own-marker-0002") if text in answer + described]
    assert HIDDEN in answer or how == "break"


class TestCredentialsOfAnOrganization:
    @feature(
        "The toolbox and its settings",
        "An organization's credentials replace the installation's",
        "agents/employees/toolboxes.py",
    )
    def test_replace_the_installations_credentials_for_the_same_service_completely(
        self, workshop: Workshop, monkeypatch: pytest.MonkeyPatch, toolbox: Toolbox
    ) -> None:
        shared = {"github": {"token": SHARED, "user": "us"}, "slack": {"token": SHARED}}
        monkeypatch.setattr(toolbox, "environment", type(toolbox.environment)(shared))
        assert given(workshop) == shared
        keep(workshop.organization, "github", token=OWN)
        assert given(workshop) == {"github": {"token": OWN}, "slack": {"token": SHARED}}
        other = Organization.objects.create(name="Globex", slug="globex")
        keep(other, "github", token=OTHERS)
        keep(other, "jira", token=OTHERS)
        clear_caches()
        assert given(workshop) == {"github": {"token": OWN}, "slack": {"token": SHARED}}
        assert load_credentials(other)["github"] == {"token": OTHERS}

    def test_take_effect_immediately_and_are_read_from_the_database_only_after_a_change(
        self, workshop: Workshop
    ) -> None:
        organization = workshop.organization
        with CaptureQueriesContext(connection) as none:
            load_credentials(organization)
        keep(organization, "github", token=OWN)
        with CaptureQueriesContext(connection) as first:
            assert load_credentials(organization)["github"]["token"] == OWN
        with CaptureQueriesContext(connection) as second:
            load_credentials(organization)
        assert (len(none), len(first), len(second)) == (0, 1, 0)
        keep(organization, "github", token="another-one")
        assert load_credentials(organization)["github"]["token"] == "another-one"
        with transaction.atomic():
            Credential.objects.all().delete()
            bump_credentials_version(organization.pk)
        organization.refresh_from_db()
        assert "github" not in load_credentials(organization)

    def test_are_in_the_context_of_a_call_but_not_in_its_repr(self, workshop: Workshop) -> None:
        keep(workshop.organization, "github", token=OWN)
        run = workshop.submit()
        context = load_context(run.pk).build_tool_context(ToolCall(run_id=run.pk))
        assert context.credentials["github"]["token"] == OWN
        assert OWN not in repr(context)

    @feature(
        "The toolbox and its settings",
        "Credentials that no key can decrypt fail only the calls that need them",
        "agents/employees/toolboxes.py",
    )
    def test_that_cannot_be_read_fail_only_the_calls_that_need_them(
        self, babble: Workshop, settings: Settings
    ) -> None:
        keep(babble.organization, "github", token=OWN)
        keys = settings.GADGET_ENCRYPTION_KEYS
        settings.GADGET_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
        babble.play(
            asking(call("probe.babble"), call("utility.calculate", operation="add", a=1, b=2))
        )
        run = babble.work()
        assert run.status == RunStatus.SUCCEEDED
        refused, summed = ToolCall.objects.filter(run=run).order_by("index")
        assert error_code(refused) == "UNAUTHORIZED"
        assert "'github' can no longer be read" in refused.content
        assert summed.status == "succeeded"
        babble.play(asking(call("probe.babbleWrite")))
        run = babble.work()
        assert (last_call(run).status, error_code(last_call(run))) == ("rejected", "UNAUTHORIZED")
        settings.GADGET_ENCRYPTION_KEYS = keys
        clear_caches()
        assert given(babble)["github"]["token"] == OWN


class TestSecretCredentials:
    @pytest.fixture
    def world(self, babble: Workshop, model: ModelServer) -> Workshop:
        keep(babble.organization, "github", token=OWN)
        keep(Organization.objects.create(name="Globex", slug="globex"), "github", token=OTHERS)
        return babble

    @feature(
        "The toolbox and its settings",
        "Credentials appear in no row, prompt, card, transcript, log line or database file",
        "agents/employees/toolboxes.py",
    )
    def test_are_absent_from_rows_prompts_cards_transcripts_and_logs(
        self, world: Workshop, model: ModelServer, lines: list[str], settings: Settings
    ) -> None:
        asked = tuple(Call("probe.babble", {"how": how}) for how in ("tell", "refuse", "break"))
        model.script(
            Response(calls=asked),
            Response(calls=(Call("probe.babbleWrite"),)),
            Response(text="Done."),
        )
        run = world.work()
        assert run.status == RunStatus.WAITING
        world.approve(world.card(run))
        run = world.drive(again(run))
        assert run.status == RunStatus.SUCCEEDED, run.problem
        rows = [
            str(list(kind.objects.values()))
            for kind in (ToolCall, Event, Approval, Pass, Message, AuditEntry, Run)
        ]
        places = {
            "rows": "".join(rows),
            "prompts": json.dumps(model.requests),
            "transcript": transcript_of(run),
            "log": "\n".join(lines),
            "file": file_of_the_database(),
        }
        for place, text in places.items():
            assert "own-marker" not in text, place
            assert "others-marker" not in text, place
        assert f"asks with {HIDDEN}" in places["log"]
        assert f"broken by {HIDDEN}" in places["log"]
        assert HIDDEN in places["prompts"]
        assert len(places["rows"]) > 1_000


def transcript_of(run: Run) -> str:
    entries = read_entries(run.pk, 0, run.next_event_seq, set())
    return "".join(
        form.write_entry(entry)
        for form in (JsonTranscript(), MarkdownTranscript())
        for entry in entries
    )


def file_of_the_database() -> str:
    """Return the bytes of SQLite's file and of its log; on PostgreSQL, the stored column.

    Another process reads the files: closing one that our own connections use drops their locks, and
    later tests fail with "disk I/O error" (https://www.sqlite.org/howtocorrupt.html, 2.2).
    """
    if connection.vendor != "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("SELECT fields FROM accounts_credential")
            return str(cursor.fetchall())
    name = Path(str(connection.settings_dict["NAME"]))
    paths = [path for path in (name, name.with_name(f"{name.name}-wal")) if path.exists()]
    found = subprocess.run(["cat", *paths], capture_output=True, check=True).stdout
    assert b"accounts_credential" in found
    return found.decode("latin-1")


def test_the_log_hides_a_providers_key_even_if_it_is_percent_encoded(
    workshop: Workshop, model: ModelServer
) -> None:
    provider = workshop.employee.provider
    provider.api_key = "an ordinary key 77"
    provider.save()
    model.script(Response(text="Done."))
    workshop.work()
    line = KNOWN_SECRETS.redact("an%20ordinary%20key%2077, an ordinary key 77", "[hidden]")
    assert line == "[hidden], [hidden]"
