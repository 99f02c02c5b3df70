"""Names under which tools are served to agents elsewhere: strict clients accept them, and each name
always means the same tool."""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.employees.models import Grant
from agents.employees.toolboxes import load_toolbox
from agents.gateway.models import AgentKey
from agents.gateway.tickets import Ticket
from agents.mcp_server.call_responses import describe_tool
from agents.mcp_server.names import (
    CANCEL_TOOL,
    TICKET_TOOL,
    find_tool_name,
    get_served_name,
    name_as_served,
)
from agents.mcp_server.server import INSTRUCTIONS, _load_tools
from agents.mcp_server.tickets import _name_as_served
from agents.runs.models import CallStatus, ToolCall
from tests.features import feature
from tests.gateway.conftest import make_key
from tests.probes import Effect
from tests.providers.random_names import EQUAL_DIGESTS, SETS_OF_NAMES
from tests.strict_model import StrictModel
from tests.tools.connections.api import Api, operation
from tests.tools.connections.connecting import MISBEHAVING, connect_api, connect_program, take
from tests.workshop import Workshop
from tools.connections.models import Source, SourceTool
from tools.contract import ErrorCode, ToolError, ToolResult
from tools.sources.mcp import PROCESS_POOL
from tools.toolbox import Toolbox

SERVED = re.compile(r"^[a-zA-Z0-9_-]{1,48}$")
LONG = "createOrUpdateTheContentsOfAFileInARepositoryOfAnOrganization"
HARD = [
    *(
        "data.searchRecords",
        "data__searchRecords",
        "data_searchRecords",
        "data.search.Records",
        "data.search__Records",
    ),
    *("a.b", "a__b", "a_.b", "a___b", "a._b", "a.b_", "a.b__", "a", "a_", "a-b", "A.b", "a.B"),
    *(
        "gadget.ticket",
        "gadget.cancel",
        "gadget__ticket",
        "gadget__cancel",
        "gadget",
        "gadget.ticket.x",
    ),
    *(
        f"github.{LONG}",
        f"github.{LONG}1",
        f"github__{LONG}",
        f"{LONG}.{LONG}",
        "x" * 48,
        "x" * 49,
        "x." + "y" * 45,
    ),
    *EQUAL_DIGESTS,
]
"""Names that are long, or equal once a dot is written as underscores."""


@pytest.fixture
def model() -> Iterator[StrictModel]:
    with StrictModel() as running:
        yield running


@pytest.fixture
def api() -> Iterator[Api]:
    with Api() as running:
        yield running
    PROCESS_POOL.close_all()


def connect_everything(workshop: Workshop, api: Api, folder: Path) -> None:
    """Connect an API and an MCP server with long and similar names, and grant every tool."""
    alike = [
        "add_contact",
        "add__contact",
        "add.contact",
        "add-contact",
        "ADD.contact",
        LONG,
        f"{LONG}s",
        "é",
        "1st",
    ]
    for number, name in enumerate([*alike, "x" * 200]):
        api.paths[f"/{number}"] = {"post": operation(name)}
    schema = {"type": "object", "properties": {}}
    mcp = [
        {"name": name, "description": "Do it", "inputSchema": schema}
        for name in [*alike, "日本", "x" * 200]
    ]
    (folder / "tools.json").write_text(json.dumps(mcp))
    connect_api(workshop, api, "crm")
    connect_api(workshop, api, "gadget")
    connect_program(
        workshop,
        [sys.executable, str(MISBEHAVING), f"definitions={folder / 'tools.json'}"],
        "remote",
    )
    for source in Source.objects.all():
        take(source, *SourceTool.objects.filter(source=source).values_list("tool", flat=True))
    held = set(workshop.employee.grants.values_list("tool", flat=True))
    workshop.organization.refresh_from_db()  # let this process load the new tools
    names = {tool.name for tool in load_toolbox(workshop.organization.pk).tools()} - held
    Grant.objects.bulk_create([Grant(employee=workshop.employee, tool=name) for name in names])


@feature(
    "Agents elsewhere",
    "Tools are served under names that strict clients accept and that are never reused for another tool",
    "agents/mcp_server/names.py",
)
@pytest.mark.django_db(transaction=True)
def test_a_strict_model_accepts_the_names_of_all_tools(
    workshop: Workshop, api: Api, model: StrictModel, tmp_path: Path
) -> None:
    connect_everything(workshop, api, tmp_path)
    key: AgentKey = make_key(workshop)
    tools = asyncio.run(_load_tools(key))
    names = [tool.name for tool in tools]
    own = {tool.name for tool in load_toolbox(workshop.organization.pk).tools()}
    assert {name.partition("__")[0] for name in names} >= {"data", "crm", "gadget", "remote"}
    assert [name for name in names if not SERVED.match(name)] == []
    assert len(set(names)) == len(names) == len({find_tool_name(name, own) for name in names})
    response = model.offer([*names, TICKET_TOOL, CANCEL_TOOL])
    assert response.status_code == 200, response.text
    assert model.offer(sorted(own)).status_code == 400, "the control: with their own names"


@pytest.mark.parametrize(
    ("names", "status"),
    [(["a__b"], 200), (["a.b"], 400), (["x" * 48], 200), (["x" * 49], 400), (["a", "a"], 400)],
)
def test_the_strict_model_refuses_illegal_names(
    model: StrictModel, names: list[str], status: int
) -> None:
    assert model.offer(names).status_code == status


def test_served_names_are_legal_and_unique() -> None:
    served = [get_served_name(name) for name in HARD]
    assert [name for name in served if not SERVED.match(name)] == []
    assert len({*served, TICKET_TOOL, CANCEL_TOOL}) == len(HARD) + 2


@settings(max_examples=150)
@given(SETS_OF_NAMES)
def test_any_names_become_legal_and_unique_and_map_back(names: list[str]) -> None:
    """Some tools have the served name of another tool as their own name."""
    names = list(dict.fromkeys([*names, *map(get_served_name, names)]))
    served = [get_served_name(name) for name in names]
    assert [name for name in served if not SERVED.match(name)] == []
    assert len(set(served)) == len(names)
    assert [find_tool_name(name, names) for name in served] == names


@settings(max_examples=100)
@given(SETS_OF_NAMES, st.randoms())
def test_a_served_name_never_changes_to_another_tool(
    names: list[str], chance: random.Random
) -> None:
    """Even if tools are added or removed, a served name means the same tool or none."""
    names = list(dict.fromkeys([*names, *map(get_served_name, names)]))
    served = {name: get_served_name(name) for name in names}
    others = [name for name in names if chance.random() < 0.5]
    for name, called in served.items():
        found = find_tool_name(called, others)
        assert found in (name, None)


def test_a_name_of_one_word_is_served_unchanged_and_a_dot_as_two_underscores() -> None:
    assert (get_served_name("search"), get_served_name("data.searchRecords")) == (
        "search",
        "data__searchRecords",
    )


@pytest.mark.parametrize(
    "name", ["data.searchRecords", "unknown.tool", f"github.{LONG}", "data.searchRecords@1.0"]
)
def test_a_name_with_dots_is_accepted_in_calls(name: str) -> None:
    assert find_tool_name(name, [name]) == name


def test_the_name_of_a_tool_is_not_accepted_if_it_is_the_served_name_of_another_tool() -> None:
    assert find_tool_name("data__searchRecords", ["data__searchRecords"]) == "data.searchRecords"
    assert (
        find_tool_name(get_served_name("data__searchRecords"), ["data__searchRecords"])
        == "data__searchRecords"
    )


def test_texts_refer_to_tools_by_their_served_names() -> None:
    names = {"data.searchRecords", "results.read", f"github.{LONG}"}
    text = "Ids are from data.searchRecords. See example.com, results.read(handle), e.g. results.readAll"
    served = "Ids are from data__searchRecords. See example.com, results__read(handle), e.g. results.readAll"
    assert name_as_served(text, names) == served
    assert name_as_served(f"github.{LONG}", names) == get_served_name(f"github.{LONG}")
    assert "gadget.ticket" not in INSTRUCTIONS
    assert TICKET_TOOL in INSTRUCTIONS


def test_descriptions_refer_to_tools_by_their_served_names() -> None:
    tool = Effect()
    tool.description = "First call probe.draw."
    described = describe_tool(tool, {"probe.draw", "probe.effect"})
    assert (described.name, described.description) == ("probe__effect", "First call probe__draw.")


def test_descriptions_of_params_refer_to_tools_by_their_served_names(toolbox: Toolbox) -> None:
    tools = {tool.name: tool for tool in toolbox.tools()}
    schema = describe_tool(tools["data.updateRecord"], tools).input_schema
    assert "data__searchRecords" in schema["properties"]["record_id"]["description"]
    assert "data.searchRecords" not in json.dumps(schema)
    assert "data.searchRecords" in json.dumps(tools["data.updateRecord"].schema), (
        "the tool's own stays as it is"
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("succeeds", [False, True])
def test_errors_refer_to_tools_by_their_served_names(workshop: Workshop, succeeds: bool) -> None:
    error = ToolError(ErrorCode.NOT_FOUND, "No such record.")
    result = ToolResult.ok("data.searchRecords") if succeeds else ToolResult.failed(error)
    text = "First call data.searchRecords. See example.com."
    call = ToolCall(status=CallStatus.SUCCEEDED, result=result.as_json(), content=text)
    told = _name_as_served(make_key(workshop), Ticket(call, "failed")).content
    assert told == (text if succeeds else text.replace(".search", "__search")), (
        "data stays as it is"
    )
