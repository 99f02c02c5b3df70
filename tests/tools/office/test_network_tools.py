"""The built-in network tools: their results are treated as text from outside, and their params are
checked for the organization's own data."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tests.features import feature
from tools.builtin import BUILTIN_TOOLS
from tools.contract import Tool
from tools.office.tools import OFFICE_TOOLS
from tools.toolbox import Grants, Permission, Policy, judge_call
from tools.toolbox.provenance import OwnData, Provenance

PARAMS: dict[str, dict[str, Any]] = {
    "search_google": {"query": "Globex Corporation"},
    "web.searchCompany": {"name": "Globex Corporation"},
    "web.validateDomain": {"domain": "example.com"},
    "web.fetchPage": {"url": "https://example.com/"},
}
POLICY = Policy(allowed_hosts=frozenset({"example.com", "www.googleapis.com"}))


class Carrying:
    """A provenance check that finds the organization's own data in every call."""

    def trace(self, tool: Tool, params: Mapping[str, Any]) -> Provenance:
        raise AssertionError("no condition needs it")

    def find_own_data(self, tool: Tool, params: Mapping[str, Any]) -> OwnData:
        return OwnData(("Globex Corporation",))


def reaches_network(tool: type[Tool]) -> bool:
    """Return True if the tool's module uses `tools.network`, the only way to the network."""
    used = vars(sys.modules[tool.__module__]).values()
    return any(str(getattr(each, "__module__", "")).startswith("tools.network") for each in used)


NETWORK_TOOLS = [tool for tool in (*BUILTIN_TOOLS, *OFFICE_TOOLS) if reaches_network(tool)]


@feature(
    "The gate",
    "Results of built-in network tools are from outside, and their params are searched for own data",
    "tools/office/tools/google_search.py",
    whole_file=True,
)
def test_the_list_of_network_tools_is_complete() -> None:
    assert {tool.name for tool in NETWORK_TOOLS} == PARAMS.keys()


@pytest.mark.parametrize("tool", NETWORK_TOOLS)
def test_results_are_from_outside_and_params_with_the_organizations_data_need_approval(
    tool: type[Tool],
) -> None:
    assert tool().has_outside_results
    granted = Grants(frozenset({tool.name}))
    verdict = judge_call(tool(), PARAMS[tool.name], granted, POLICY, values=Carrying())
    assert verdict.permission is Permission.ASK
    assert verdict.reason == 'sends your own data outside: "Globex Corporation"'
    assert judge_call(tool(), PARAMS[tool.name], granted, POLICY).permission is Permission.AUTO
