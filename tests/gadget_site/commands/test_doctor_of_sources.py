"""The doctor contacts every active source, and reports failing sources and broken plugins."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from pytest_django import Settings

from agents.accounts.models import Organization
from gadget_site.management import installation_checks
from tests.features import feature
from tests.tools.connections.api import Api
from tests.tools.connections.connecting import MISBEHAVING, connect_api, set_credentials
from tests.workshop import build_workshop
from tools.connections.models import AuthenticationMethod, Source, SourceKind
from tools.office.tools import OFFICE_TOOLS
from tools.sources.mcp import PROCESS_POOL

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = "token-that-nobody-may-see"


@pytest.fixture
def api() -> Iterator[Api]:
    with Api() as running:
        yield running
    PROCESS_POOL.close_all()


@pytest.fixture
def acme() -> Organization:
    return build_workshop("acme").organization


@feature(
    "Connected sources",
    "`doctor` checks every active source and names those that fail",
    "gadget_site/management/installation_checks.py",
)
def test_a_working_source_passes_and_a_failing_source_is_reported(
    api: Api, acme: Organization, redis_url: str
) -> None:
    workshop = build_workshop("globex")
    set_credentials(workshop.organization, "crm", token=TOKEN)
    connect_api(workshop, api, authentication=AuthenticationMethod.BEARER)
    Source.objects.create(
        organization=acme, kind=SourceKind.MCP_HTTP, name="away", address="http://127.0.0.1:9/mcp"
    )
    dying = [sys.executable, str(MISBEHAVING), "start=dies"]
    Source.objects.create(organization=acme, kind=SourceKind.MCP_STDIO, name="dying", command=dying)
    found = about("connections")
    assert [line["text"].partition(":")[0] for line in found] == [
        "acme/away",
        "acme/dying",
        "globex/crm responds",
    ]
    assert [line["is_well"] for line in found] == [False, False, True]
    assert "2 tools" in found[2]["text"]
    assert all("/admin/" in line["fix"] for line in found[:2])
    assert TOKEN not in json.dumps(found)
    assert Source.objects.get(name="away").problem
    assert not Source.objects.get(name="crm").problem


def test_a_switched_off_source_is_not_contacted(
    api: Api, acme: Organization, redis_url: str
) -> None:
    source = connect_api(build_workshop("globex"), api)
    Source.objects.filter(pk=source.pk).update(is_active=False, checked_at=None)
    assert about("connections") == []
    source.refresh_from_db()
    assert source.checked_at is None


def test_a_broken_plugin_is_reported_and_the_rest_passes(
    settings: Settings, redis_url: str
) -> None:
    config = settings.GADGET_CONFIG
    tools = config.tools.model_copy(update={"plugins": ("nowhere",)})
    settings.GADGET_CONFIG = config.model_copy(update={"tools": tools})
    (office, demo, found) = about("plugins")
    assert (office["is_well"], office["text"]) == (True, f"office: {len(OFFICE_TOOLS)} tools")
    assert (demo["is_well"], demo["text"]) == (True, "office-demo: 1 tool")
    assert not found["is_well"]
    assert found["text"].startswith(
        "nowhere is not loaded: no installed package has an entry point of this name"
    )
    assert "gadget.yaml" in found["fix"]
    assert all(line["is_well"] for line in about("tools"))


def test_a_database_without_tables_is_reported_and_other_checks_still_run(
    redis_url: str, acme: Organization
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE connections_source RENAME TO connections_away")
        cursor.execute("DELETE FROM django_migrations WHERE app = 'connections'")
    try:
        findings = list(installation_checks.check_installation())
        assert any("migrations are not applied" in finding.text for finding in findings)
        assert [finding for finding in findings if finding.subject == "connections"] == []
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE connections_away RENAME TO connections_source")
        call_command("migrate", "connections", fake=True, verbosity=0)


def about(subject: str) -> list[dict[str, Any]]:
    """Return the doctor's findings about this subject."""
    output = io.StringIO()
    with suppress(SystemExit):
        call_command("doctor", "--json", stdout=output)
    return [finding for finding in json.loads(output.getvalue()) if finding["subject"] == subject]
