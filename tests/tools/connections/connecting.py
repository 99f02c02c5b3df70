"""An admin's actions on sources, called through the functions behind the forms."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agents.accounts.models import Credential, Organization
from agents.employees.models import Grant
from agents.employees.sources import refresh_source
from agents.employees.toolboxes import bump_credentials_version
from tests.tools.connections.api import Api
from tests.workshop import Workshop
from tools.connections.changes import (
    DescribedTool,
    SourceDescription,
    ToolChoice,
    allow_private,
    apply_choices,
    save_description,
)
from tools.connections.models import Source, SourceKind, SourceTool
from tools.contract import Level, fingerprint

MISBEHAVING = Path(__file__).parent.parent / "mcp_servers" / "misbehaving.py"
TIME_SERVER = [sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"]


def connect_api(workshop: Workshop, api: Api, name: str = "crm", **more: Any) -> Source:
    """Connect an API and read its description; none of its tools is chosen yet. Return
    the source."""
    values = {"address": api.description_url, "base_url": api.url, **more}
    source = Source.objects.create(
        organization=workshop.organization, kind=SourceKind.OPENAPI, name=name, **values
    )
    allow_private(source)
    return read(source)


def connect_program(
    workshop: Workshop, command: list[str], name: str = "time", **more: Any
) -> Source:
    """Connect an MCP server that is started as a program, and read its tools, which are then in
    quarantine. Return the source."""
    values = {"kind": SourceKind.MCP_STDIO, "command": command, **more}
    return read(Source.objects.create(organization=workshop.organization, name=name, **values))


def read(source: Source) -> Source:
    """Read the source's description again, as the button on its page does."""
    source = Source.objects.get(pk=source.pk)
    asked = refresh_source(source)
    assert asked.problem is None, asked.problem
    source.refresh_from_db()
    return source


def take(source: Source, *tools: str, level: Level | None = None) -> None:
    """Accept the current definitions of these tools, at this level if one is given."""
    rows = SourceTool.objects.filter(source=source, tool__in=tools)
    assert rows.count() == len(tools)
    apply_choices(
        source,
        {
            row.pk: ToolChoice(is_chosen=True, level=level.value if level else "", seen=row.hash)
            for row in rows
        },
    )


def leave(source: Source, tool: str) -> None:
    """Stop offering this tool."""
    row = row_of(source, tool)
    apply_choices(source, {row.pk: ToolChoice(is_chosen=False, level=row.level, seen=row.hash)})


def grant(workshop: Workshop, *tools: str) -> None:
    Grant.objects.bulk_create([Grant(employee=workshop.employee, tool=tool) for tool in tools])


def offer(workshop: Workshop, source: Source, *tools: str, level: Level | None = None) -> None:
    """Choose these tools, and grant them to the employee."""
    take(source, *tools, level=level)
    grant(workshop, *tools)


def row_of(source: Source, tool: str) -> SourceTool:
    return SourceTool.objects.get(source=source, tool=tool)


def generation(organization: Organization) -> int:
    return Organization.objects.values_list("tools_version", flat=True).get(pk=organization.pk)


def set_credentials(organization: Organization, service: str, **fields: str) -> None:
    """Set an organization's credentials for a service, as the form for credentials does."""
    Credential.objects.update_or_create(
        organization=organization, service=service, defaults={"fields": json.dumps(fields)}
    )
    bump_credentials_version(organization.pk)


def told(key: str, text: str = "", level: Level = Level.READ, tool: str = "") -> DescribedTool:
    """Describe a tool as a source would; a different text gives the tool a different definition."""
    definition = {"key": key, "description": text}
    name = f"crm.{tool or key}"
    return DescribedTool(key, name, key, (), definition, fingerprint(definition), level)


def keep(source: Source, *tools: DescribedTool, **more: Any) -> dict[str, list[str]]:
    """Store a description with these tools, as if the source had returned it. Return the names of
    the tools that are new, changed, gone or back, grouped under these words."""
    found = save_description(
        source, SourceDescription(title="CRM", version="1", tools=tools, **more)
    )
    kinds: dict[str, Iterable[str]] = {
        "new": found.new,
        "changed": found.changed,
        "gone": found.gone,
    }
    return {kind: list(names) for kind, names in {**kinds, "back": found.back}.items() if names}
