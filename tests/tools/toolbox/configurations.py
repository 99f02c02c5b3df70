"""Random tools, grants and rules, and the verdicts that the documentation requires for them. The
gate's code is not used."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tools.contract import ErrorCode, Level, Tool, ToolContext, ToolResult
from tools.toolbox import (
    Condition,
    Grants,
    Otherwise,
    Permission,
    Policy,
    Rule,
    Verdict,
    judge_call,
)

NAME = "sample.any"
_LEVELS = ("read", "draft", "write", "destructive")
_LONGEST_SEARCHED = 2_000
_UNFIT_CODES = (
    ErrorCode.INVALID_TOOL_ARGUMENTS,
    ErrorCode.INVALID_PARAMETER,
    ErrorCode.MISSING_PARAM,
)


class Changes(BaseModel):
    status: Literal["active", "inactive"] | None = None
    score: int | None = None


class Row(BaseModel):
    n: int


class AnyTool(Tool):
    """A tool whose attributes can be set; `reaches` lists the hosts that it contacts, or is None if
    they are unknown."""

    name = NAME
    description = "Does anything."

    class Params(BaseModel):
        text: str = Field(min_length=1)
        times: int = Field(1, ge=1, le=5)
        style: Literal["plain", "loud"] = "plain"
        changes: Changes | None = None
        ids: list[str] = []
        rows: list[Row] = []

    def __init__(self, reaches: frozenset[str] | None = None, **attributes: Any) -> None:
        self.reaches = reaches
        for name, value in attributes.items():
            setattr(self, name, value)

    def hosts(self, params: Any) -> frozenset[str] | None:
        return self.reaches

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok()


@dataclass(frozen=True)
class Arguments:
    """A model's arguments, and the canonical params that they become; None if no tool accepts the
    arguments."""

    said: str | dict[str, Any]
    meant: dict[str, Any] | None


@dataclass(frozen=True)
class Configuration:
    """A call with everything that decides its verdict; `tool` is None if no tool has the called
    name."""

    tool: Tool | None
    arguments: Arguments
    grants: Grants
    policy: Policy


@dataclass(frozen=True)
class Expected:
    """The verdict that the documentation requires.

    Attributes:
        code: the code of the refusal; None if nothing is refused, or if the invalid params
            determine the code.
        says: texts that the reason must contain.
    """

    permission: Permission
    level: str
    code: ErrorCode | None = None
    says: tuple[str, ...] = ()


def expected(call: Configuration) -> Expected:
    """Return the documented verdict, with the checks in the documentation's order."""
    tool, grants = call.tool, call.grants
    if tool is None:
        return Expected(Permission.FORBIDDEN, "destructive", ErrorCode.TOOL_NOT_FOUND, ("no tool",))
    level = max(tool.level.value, str(grants.raised.get(tool.name, "read")), key=_LEVELS.index)
    if refused := _refused(tool, grants, call.policy):
        code, word = refused
        return Expected(Permission.FORBIDDEN, level, code, (tool.name, word))
    params = call.arguments.meant
    if params is None:
        return Expected(Permission.FORBIDDEN, level)
    broken = [each for each in grants.conditions.get(tool.name, ()) if not holds(each, params)]
    if forbids := [each.param for each in broken if each.otherwise == "forbid"]:
        return Expected(
            Permission.FORBIDDEN,
            level,
            ErrorCode.NOT_PERMITTED,
            ("only within limits", f"{forbids[0]} is "),
        )
    why = [f"{each.param} is " for each in broken[:1]]
    if level in ("write", "destructive"):
        own = (
            "this changes data" if level == "write" else "this may delete data or change many items"
        )
        why.append(
            own
            if level == tool.level.value
            else f"raised the level from {tool.level.value} to {level}"
        )
    elif tool.open_world:
        why += _beyond(tool.hosts(tool.load_params(params)), call.policy.allowed_hosts)
    return Expected(
        Permission.ASK if why else Permission.AUTO, level, says=tuple(why) or (f"{level} level",)
    )


def _refused(tool: Tool, grants: Grants, policy: Policy) -> tuple[ErrorCode, str] | None:
    """Return the code and a word of the reason if the tool cannot be used at all, else None."""
    names = {tool.name, f"{tool.name}@{tool.version}"}
    if names & set(policy.disabled):
        return ErrorCode.TOOL_DISABLED, "disabled"
    if tool.name in grants.stopped:
        return ErrorCode.TOOL_DISABLED, f"stopped by {grants.stopped[tool.name]}"
    is_granted = tool.name in grants.tools
    if not is_granted or (tool.modes is not None and grants.mode not in tool.modes):
        word = "not granted" if not is_granted else "mode" if tool.modes else "platform only"
        return ErrorCode.NOT_PERMITTED, word
    has = [capability in grants.capabilities for capability in tool.capabilities]
    if has and not (all(has) if policy.strict_capabilities else any(has)):
        return ErrorCode.NOT_PERMITTED, "capability"
    demanded = [
        *tool.features,
        *(each for name in names for each in policy.features_by_tool.get(name, ())),
    ]
    lacks = any(feature not in grants.features for feature in demanded)
    return (ErrorCode.NOT_PERMITTED, "feature") if lacks else None


def _beyond(hosts: frozenset[str] | None, allowed: frozenset[str]) -> list[str]:
    if hosts is None:
        return ["any address on the internet"]
    return [host for host in hosts if host.lower() not in allowed]


def holds(condition: Condition, params: Mapping[str, Any]) -> bool:
    """Return True if all values at the condition's path are present and meet its rule.

    A condition on a value's origin is never met here, because without a run the origin is unknown.
    """
    if condition.rule is Rule.NOT_FROM_OUTSIDE:
        return False
    found = list(_found(params, condition.param.split(".")))
    return all(
        value is not None and _within(condition.rule.value, value, condition.value)
        for value in found
    )


def _found(value: Any, path: list[str]) -> Iterator[Any]:
    """Yield the values at the end of the path, with None for each value that is not given."""
    if not path:
        yield value
    elif isinstance(value, list):
        if not value:
            yield None
        for each in value:
            yield from _found(each, path)
    else:
        yield from _found(value.get(path[0]), path[1:]) if isinstance(value, dict) else [None]


def _within(rule: str, value: Any, bound: Any) -> bool:
    is_number = type(value) in (int, float)
    if rule in ("minimum", "maximum"):
        return is_number and (value >= bound if rule == "minimum" else value <= bound)
    if rule == "max_length":
        return type(value) in (str, list) and len(value) <= bound
    if rule == "pattern":
        return (
            type(value) is str
            and len(value) <= _LONGEST_SEARCHED
            and re.fullmatch(bound, value) is not None
        )
    wanted = bound if rule == "one_of" else [bound]
    return json.dumps(value, sort_keys=True) in [
        json.dumps(each, sort_keys=True) for each in wanted
    ]


def assert_as_documented(call: Configuration) -> Verdict:
    """Check the rules that hold for every verdict, and that this verdict is the documented one."""
    verdict, wanted = judged(call), expected(call)
    assert (verdict.permission, verdict.level.value) == (wanted.permission, wanted.level)
    assert verdict.reason
    assert all(text in verdict.reason for text in wanted.says), (wanted.says, verdict.reason)
    assert (verdict.error is not None) == (wanted.permission is Permission.FORBIDDEN)
    if verdict.error is None:
        assert verdict.params == call.arguments.meant
        assert judged(replace(call, arguments=Arguments(verdict.params, verdict.params))) == verdict
    else:
        assert verdict.params == {}
        assert verdict.error is not None
        assert verdict.error.is_definite
        assert verdict.error.code in ((wanted.code,) if wanted.code else _UNFIT_CODES)
    if verdict.permission is Permission.AUTO:
        assert call.tool is not None
        assert call.tool.name in call.grants.tools
        assert not call.tool.level.has_side_effects
    return verdict


def judged(call: Configuration) -> Verdict:
    return judge_call(call.tool, call.arguments.said, call.grants, call.policy, NAME)


def _mostly(
    usual: st.SearchStrategy[Any], seldom: st.SearchStrategy[Any], once_in: int = 6
) -> st.SearchStrategy[Any]:
    return st.sampled_from([*[usual] * (once_in - 1), seldom]).flatmap(lambda chosen: chosen)


_WORDS = st.frozensets(st.sampled_from(["a", "b", "c"]), max_size=2)
_HAVES = _mostly(st.just(frozenset("abc")), st.frozensets(st.sampled_from(["a", "b", "c"])), 4)
_NAMES = st.frozensets(
    st.sampled_from([f"{NAME}@1.0", "sample.*", "sample", "other.tool", "*", NAME.upper()])
)
_KNOWN = st.sampled_from([NAME, f"{NAME}@1.0", f"{NAME}@2.0", "sample.*", "other.tool"])
_OFTEN = _mostly(st.just(NAME), _KNOWN, 3)
_HOSTS = st.frozensets(
    st.sampled_from(["example.com", "EXAMPLE.com", "evil.example.com", "localhost"]), max_size=2
)
_PATHS = [
    "text",
    "times",
    "style",
    "changes",
    "changes.status",
    "changes.score",
    "ids",
    "rows",
    "rows.n",
]
_NUMBERS = ["times", "changes.score", "rows.n"]
_BY_RULE = {
    Rule.PATTERN: ["text", "style", "changes.status", "ids.deeper"],
    Rule.MINIMUM: _NUMBERS,
    Rule.MAXIMUM: _NUMBERS,
    Rule.MAX_LENGTH: ["text", "style", "ids", "rows"],
}
_VALUES = [
    1,
    2.5,
    0,
    True,
    None,
    "plain",
    "a",
    "active",
    [],
    ["a"],
    {"n": 1},
    {"status": None, "score": 1},
]
_BOUNDS = {
    Rule.EQUALS: st.sampled_from(_VALUES),
    Rule.ONE_OF: st.lists(st.sampled_from(_VALUES), min_size=1, max_size=6),
    Rule.PATTERN: st.sampled_from(["a+", "plain|loud", "(in)?active", ".*", "b"]),
    Rule.MINIMUM: st.sampled_from([-1, 0, 1, 2.5, 4]),
    Rule.MAXIMUM: st.sampled_from([-1, 0, 1, 2.5, 4, 9]),
    Rule.MAX_LENGTH: st.integers(0, 6),
    Rule.NOT_FROM_OUTSIDE: st.sampled_from([True]),
}


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    """Draw one rule with a bound that fits it, on a param that exists or not."""
    rule = draw(st.sampled_from(list(_BOUNDS)))
    param = draw(
        _mostly(
            st.sampled_from(_BY_RULE.get(rule, _PATHS)),
            st.sampled_from([*_PATHS, "missing", "text.deeper", "ids.deeper"]),
            3,
        )
    )
    made = Condition(param, rule, draw(_BOUNDS[rule]), draw(st.sampled_from(list(Otherwise))))
    return Condition.from_json(made.as_json())


@st.composite
def fitting(draw: st.DrawFn) -> Arguments:
    """Draw arguments that the tool accepts; optional params may be omitted."""
    given: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {"text": st.sampled_from(["a", "aaa", "plain", "b" * 2_001])},
            optional={
                "times": st.integers(1, 5),
                "style": st.sampled_from(["plain", "loud"]),
                "changes": st.none() | _CHANGES,
                "ids": st.lists(st.sampled_from(["a", "bb"]), max_size=3),
                "rows": st.lists(st.fixed_dictionaries({"n": st.integers(0, 5)}), max_size=3),
            },
        )
    )
    meant: dict[str, Any] = {
        "times": 1,
        "style": "plain",
        "changes": None,
        "ids": [],
        "rows": [],
        **given,
    }
    if meant["changes"] is not None:
        meant["changes"] = {"status": None, "score": None, **meant["changes"]}
    return Arguments(given if draw(st.booleans()) else json.dumps(given), meant)


_CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(["active", "inactive", None]),
        "score": st.integers(0, 5) | st.none(),
    },
)
_UNFIT_SAID: list[str | dict[str, Any]] = [
    *(
        "",
        "[]",
        "null",
        "{",
        '{"text": "a"} {}',
        '{"text": 1}',
        '{"text": "a", "text": "b"}',
        '"text"',
    ),
    *(
        '{"text": "a", "times": 6}',
        '{"text": "a", "more": 1}',
        '{"text": "a\\u0000"}',
        '{"times": 1}',
    ),
    *(
        {},
        {"text": ""},
        {"text": "a", "style": "shouted"},
        {"text": "a", "rows": [{}]},
        {"text": float("nan")},
    ),
]
_UNFIT = st.sampled_from(_UNFIT_SAID).map(lambda said: Arguments(said, None))

TOOLS = st.builds(
    AnyTool,
    reaches=st.none() | _HOSTS,
    level=st.sampled_from(list(Level)),
    modes=_mostly(st.none(), st.frozensets(st.sampled_from(["general", "code"])), 3),
    capabilities=_WORDS,
    features=_WORDS,
    open_world=st.booleans(),
)
GRANTS = st.builds(
    Grants,
    tools=_mostly(_NAMES.map(lambda names: names | {NAME}), _NAMES, 8),
    mode=st.sampled_from(["general", "general", "code", "other"]),
    capabilities=_HAVES,
    features=_HAVES,
    raised=st.dictionaries(_OFTEN, st.sampled_from(list(Level)), max_size=2),
    conditions=st.dictionaries(_OFTEN, st.lists(conditions(), max_size=3).map(tuple), max_size=2),
    stopped=_mostly(
        st.just({}), st.dictionaries(_KNOWN, st.sampled_from(["Ann", "Bo"]), max_size=2)
    ),
)
POLICIES = st.builds(
    Policy,
    disabled=_mostly(st.just(frozenset()), st.frozensets(_KNOWN, max_size=2)),
    strict_capabilities=st.booleans(),
    features_by_tool=st.dictionaries(_KNOWN, _WORDS, max_size=2),
    allowed_hosts=st.frozensets(st.sampled_from(["example.com", "localhost"])),
)
CONFIGURATIONS = st.builds(
    Configuration, _mostly(TOOLS, st.none(), 40), _mostly(fitting(), _UNFIT, 12), GRANTS, POLICIES
)
