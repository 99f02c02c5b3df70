"""A third-party tool needs approval before it reaches an address named in its params."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tools.contract import (
    Level,
    Tool,
    ToolContext,
    ToolResult,
    find_address_params,
    find_named_hosts,
)
from tools.contract.named_hosts import is_address_name
from tools.toolbox import Grants, Permission, Policy, judge_call

ALLOWED = Policy(allowed_hosts=frozenset({"good.example", "192.0.2.7"}))


class Outside(Tool):
    """A third-party tool that accepts any params."""

    name = "there.look"
    description = "Looks."
    level = Level.READ
    source = "there"

    def __init__(self, level: Level = Level.READ, source: str = "there", **properties: Any) -> None:
        self.level, self.source = level, source
        self._properties = properties

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "object", "properties": self._properties}

    def check_params(self, raw: dict[str, Any]) -> dict[str, Any]:
        return raw

    def load_params(self, canonical: dict[str, Any]) -> Any:
        return canonical

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok()


def judged(params: dict[str, Any], tool: Tool | None = None) -> Any:
    return judge_call(tool or Outside(), params, Grants(tools=frozenset({"there.look"})), ALLOWED)


@pytest.mark.parametrize(
    ("value", "host"),
    [
        ("https://evil.example/?secret=1", "evil.example"),
        ("look at https://evil.example, please", "evil.example"),
        ("https://good.example/?to=https://evil.example", "evil.example"),
        ("//evil.example/x", "evil.example"),
        ("https:evil.example", "evil.example"),
        ("HTTP:/\\evil.example", "evil.example"),
        ("ht\ntps://evil.exa\tmple/", "evil.example"),
        ("gopher://evil.example", "evil.example"),
        ("1gopher://evil.example", "evil.example"),
        ("evil.com", "evil.com"),
        ("EVIL.com.:8080/x?y", "evil.com"),
        ("evil.quest/secret", "evil.quest"),
        ("10.0.0.1", "10.0.0.1"),
        ("[2001:DB8::1]:80/x", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("git@evil.com:secret.git", "evil.com"),
        ("https%3A%2F%2Fevil.example%2F", "evil.example"),
        ("https%253A%252F%252Fevil.example", "evil.example"),
        ("\uff48ttps\uff1a//evil.example", "evil.example"),
        ("evil\u3002com", "evil.com"),
        ('{"a": ["https:\\/\\/evil.example"]}', "evil.example"),
        ("http://good.example\u200b.evil.example/", "good.example.evil.example"),
        ("intranet:8080/?secret=1", "intranet"),
        ("localhost:9000", "localhost"),
        ("see evil.example/?secret=1", "evil.example"),
        ("https://good.example and evil.example/?secret=1", "evil.example"),
        ("<img src=//evil.com/x>", "evil.com"),
        ("[a](//evil.com/x)", "evil.com"),
        ("https://good.example.:443/", ""),
        ("see good.example/page and README.md", ""),
        ("a // b", ""),
        ("chapter:3", ""),
        ("and/or, and so on. See page 3/4", ""),
        ("https://good.example/a?b=c#d", ""),
        ("good.example", ""),
        ("192.0.2.7:80", ""),
        ("/relative/path", ""),
        ("Ann Smith, see page 3. Yours", ""),
        ("john.doe", ""),
        ("10:30:00", ""),
        ("ann@evil.com", ""),
        ("v1.2", ""),
        ("report.pdf", ""),
    ],
)
def test_an_address_is_recognized_by_its_value(value: str, host: str) -> None:
    for params in ({"x": value}, {"a": [{"b": {"c": [value]}}]}):
        verdict = judged(params)
        assert (verdict.permission is Permission.ASK) == bool(host), verdict.reason
        assert host in verdict.reason


@pytest.mark.parametrize(
    "value",
    [
        "http://good.example@evil.example/",
        "http://evil.example@good.example/",
        "http://good.example\\@evil.example/",
        "http://good.example\\.evil.example/",
        "http://good.example%2eevil.example/",
        "http://good.example,evil.example/",
        "http://0x7f.1/",
        "http://2130706433/",
        "http://good.example:99999999/",
    ],
)
def test_an_ambiguous_host_always_needs_approval(value: str) -> None:
    verdict = judged({"x": value})
    assert verdict.permission is Permission.ASK
    assert "not on the list of allowed hosts" in verdict.reason


def test_an_address_param_is_recognized_by_its_name_or_its_schema() -> None:
    for value in ("evil", "2130706433", 7, ["evil"], "bücher.example", "good.example evil.quest"):
        assert (
            judged({"url": value}, Outside(url={"type": ["string", "integer", "array"]})).permission
            is Permission.ASK
        )
        by_format = Outside(x={"anyOf": [{"type": "string", "format": "uri"}, {"type": "null"}]})
        assert judged({"x": value}, by_format).permission is Permission.ASK
    assert judged({"x": "evil"}).permission is Permission.AUTO
    for harmless in (
        "good.example",
        "https://good.example/x",
        "/own/path",
        "?page=2",
        None,
        True,
        "",
    ):
        assert judged({"url": harmless}, Outside(url={})).permission is Permission.AUTO


def test_address_params_are_recognized_by_name() -> None:
    yes = "url callbackUrl target_hosts imageurl redirect_uri ip_address hostName serverName domains curl webhook url2"
    no = "url_id hostCount address email name query siteId paths description"
    assert [name for name in yes.split() if not is_address_name(name)] == []
    assert [name for name in no.split() if is_address_name(name)] == []


def test_address_params_are_found_at_every_depth() -> None:
    inner = {
        "type": "object",
        "properties": {"webhook": {"type": "string"}, "host": {"enum": ["a", "b"]}},
    }
    schema = {
        "type": "object",
        "properties": {
            "where": {"$ref": "#/$defs/Where"},
            "list": {"type": "array", "items": {"type": "string", "format": "hostname"}},
            "deep": {"$ref": "#/$defs/Deep"},
            "domain": {"type": "integer"},
            "callback": {"type": "string", "description": "JSONP"},
        },
        "$defs": {
            "Where": {"type": "string", "format": "uri"},
            "Deep": {"allOf": [inner]},
            "Loop": {"$ref": "#/$defs/Loop"},
        },
    }
    assert find_address_params(schema) == {"where", "list", "webhook"}


@pytest.mark.parametrize("body", ['{"to": "evi\\u006c.com"}', '{"a": 1}\n{"to": "evi\\u006c.com"}'])
def test_an_escaped_host_is_found_in_json_and_in_lines_of_json(body: str) -> None:
    assert find_named_hosts({"body": body}) == {"evil.com"}


@pytest.mark.parametrize(
    "body",
    [
        '{"to": "https\\u003a//evil.com", "n": ' + "9" * 5_000 + "}",
        '{"to": "https\\u003a//evil.com",}',
        '"https\\u003a//evil.com"',
        '{"to": "https\\u003a//evil\\u200b.com",}',
    ],
    ids=["long number", "comma too many", "text alone", "hidden character"],
)
def test_an_escaped_host_is_found_in_malformed_json(body: str) -> None:
    assert find_named_hosts({"body": body}) == {"evil.com"}


def test_json_nested_too_deeply_to_read_is_treated_as_an_unlisted_host() -> None:
    body = '{"to": "evil.com", "n": ' + "[" * 9_000 + "]" * 9_000 + "}"
    assert find_named_hosts({"body": body}) == {"'JSON nested too deeply to read'"}


def test_file_and_field_names_in_params_for_paths_and_sorting_are_not_taken_for_hosts() -> None:
    assert (
        find_named_hosts({"path": "README.md", "sort": "user.id", "filePath": "a.md"})
        == frozenset()
    )
    assert find_named_hosts({"text": "README.md"}) == {"readme.md"}
    assert find_named_hosts({"path": "https://evil.example/README.md"}) == {"evil.example"}


def test_keys_and_deeply_nested_values_are_searched() -> None:
    assert find_named_hosts({"headers": {"https://evil.example": 1}}) == {"evil.example"}
    deep: Any = "https://evil.example"
    for _ in range(5_000):
        deep = [deep]
    assert find_named_hosts({"a": deep}) == {"evil.example"}


@pytest.mark.parametrize(
    "text",
    ["aB+/9" * 100_000, "a." * 100_000, "a:/" * 100_000, "\u00e9%25" * 100_000, "[" * 100_000],
)
def test_a_large_value_is_searched_quickly(text: str) -> None:
    began = time.process_time()
    judged({"x": text})
    assert time.process_time() - began < 5


def test_the_reason_names_the_host_at_every_level_and_drafts_need_approval_like_reads() -> None:
    params = {"x": "https://evil.example"}
    assert judged(params, Outside(Level.DRAFT)).permission is Permission.ASK
    reason = judged(params, Outside(Level.WRITE)).reason
    assert reason.startswith("this changes data; contacts evil.example, not on the list")
    many = judged({"x": [f"https://{number}.evil.example" for number in range(9)]}).reason
    assert "and 4 more, not on" in many


def test_the_params_of_a_built_in_tool_are_not_searched_for_hosts() -> None:
    assert (
        judged({"x": "https://evil.example"}, Outside(source="built in")).permission
        is Permission.AUTO
    )


def test_a_plugin_is_trusted_if_it_declares_its_hosts() -> None:
    class Honest(Outside):
        open_world = True

        def hosts(self, params: Any) -> frozenset[str]:
            return frozenset()

    assert judged({"x": "https://evil.example"}, Honest()).permission is Permission.AUTO
