"""The gate: it makes its checks in a fixed order, permits nothing by default, and never lets a
write run without approval, whatever the rules say."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from tests.features import feature
from tests.tools.toolbox.configurations import (
    CONFIGURATIONS,
    GRANTS,
    Configuration,
    assert_as_documented,
    judged,
)
from tests.tools.toolbox.sample_tools import Echo
from tools.contract import ErrorCode, Level, ToolError
from tools.toolbox import Grants, Permission, Policy, Verdict, judge_call

NAME = Echo.name
GRANTED = Grants(frozenset({NAME}))
GOOD = {"text": "hi"}


def code_of(verdict: Verdict) -> ErrorCode:
    assert verdict.permission is Permission.FORBIDDEN
    assert verdict.params == {}
    assert verdict.error is not None
    assert verdict.error.is_definite
    return verdict.error.code


@feature(
    "The gate", "The level decides whether a call needs approval", "tools/toolbox/permissions.py"
)
@pytest.mark.parametrize(
    ("level", "decision", "reason"),
    [
        (Level.READ, Permission.AUTO, "read level"),
        (Level.DRAFT, Permission.AUTO, "draft level"),
        (Level.WRITE, Permission.ASK, "this changes data"),
        (Level.DESTRUCTIVE, Permission.ASK, "this may delete data or change many items"),
    ],
)
def test_the_level_determines_the_permission(
    level: Level, decision: Permission, reason: str
) -> None:
    verdict = judge_call(Echo(level=level), GOOD, GRANTED, Policy())
    assert (verdict.permission, verdict.level, verdict.error) == (decision, level, None)
    assert verdict.reason.startswith(reason)
    assert verdict.params == {"text": "hi", "times": 1, "style": "plain"}


def test_arguments_as_text_and_as_an_object_get_the_same_verdict() -> None:
    assert judge_call(Echo(), '{"text": "hi"}', GRANTED, Policy()) == judge_call(
        Echo(), GOOD, GRANTED, Policy()
    )


def test_an_unknown_tool_is_refused_and_named_in_the_reason() -> None:
    verdict = judge_call(None, GOOD, GRANTED, Policy(), "data.nothing")
    assert code_of(verdict) is ErrorCode.TOOL_NOT_FOUND
    assert "'data.nothing'" in verdict.reason


@pytest.mark.parametrize(("grants", "is_told"), [(GRANTED, True), (Grants(), False)])
def test_the_reason_for_a_missing_tool_is_given_only_to_employees_with_the_grant(
    grants: Grants, is_told: bool
) -> None:
    verdict = judge_call(None, GOOD, grants, Policy(withheld={NAME: "It was switched off."}), NAME)
    assert code_of(verdict) is ErrorCode.TOOL_NOT_FOUND
    assert verdict.reason == ("It was switched off." if is_told else f"There is no tool {NAME!r}.")


def test_nothing_is_granted_by_default() -> None:
    assert code_of(judge_call(Echo(), GOOD, Grants(), Policy())) is ErrorCode.NOT_PERMITTED


@feature(
    "The gate",
    "Nothing is granted by default, and a grant is an exact name",
    "tools/toolbox/permissions.py",
)
@pytest.mark.parametrize(
    "granted", ["sample", "sample.*", "sample.ech", "sample.echoes", "*", "SAMPLE.ECHO", ""]
)
def test_a_grant_must_name_the_tool_exactly(granted: str) -> None:
    verdict = judge_call(Echo(), GOOD, Grants(frozenset({granted})), Policy())
    assert code_of(verdict) is ErrorCode.NOT_PERMITTED


@pytest.mark.parametrize("disabled", [NAME, f"{NAME}@1.0"])
def test_a_disabled_tool_is_refused_despite_a_grant(disabled: str) -> None:
    policy = Policy(disabled=frozenset({disabled}))
    assert code_of(judge_call(Echo(), GOOD, GRANTED, policy)) is ErrorCode.TOOL_DISABLED
    assert code_of(judge_call(Echo(), GOOD, Grants(), policy)) is ErrorCode.TOOL_DISABLED


def test_a_tool_can_be_used_only_in_its_modes() -> None:
    tool = Echo(modes=frozenset({"code"}))
    assert code_of(judge_call(tool, GOOD, GRANTED, Policy())) is ErrorCode.NOT_PERMITTED
    assert (
        judge_call(tool, GOOD, replace(GRANTED, mode="code"), Policy()).permission
        is Permission.AUTO
    )


@feature(
    "Tool contract",
    "Modes; a tool with an empty set of them belongs to the platform and is never offered to a model",
    "tools/toolbox/permissions.py",
)
def test_a_system_tool_is_never_offered_to_a_model() -> None:
    assert (
        code_of(judge_call(Echo(modes=frozenset()), GOOD, GRANTED, Policy()))
        is ErrorCode.NOT_PERMITTED
    )


@feature(
    "Tool contract",
    "Required capabilities: all of them, or any one",
    "tools/toolbox/permissions.py",
)
def test_all_capabilities_are_required_unless_the_policy_is_lenient() -> None:
    tool = Echo(capabilities=frozenset({"a", "b"}))
    half = replace(GRANTED, capabilities=frozenset({"a"}))
    assert code_of(judge_call(tool, GOOD, half, Policy())) is ErrorCode.NOT_PERMITTED
    assert (
        judge_call(tool, GOOD, half, Policy(strict_capabilities=False)).permission
        is Permission.AUTO
    )
    assert (
        code_of(judge_call(tool, GOOD, GRANTED, Policy(strict_capabilities=False)))
        is ErrorCode.NOT_PERMITTED
    )


@feature(
    "Tool contract", "Required features of the organization's plan", "tools/toolbox/permissions.py"
)
def test_features_of_the_tool_and_of_the_policy_are_both_required() -> None:
    tool = Echo(features=frozenset({"plus"}))
    policy = Policy(features_by_tool={NAME: frozenset({"beta"})})
    plus = replace(GRANTED, features=frozenset({"plus"}))
    assert code_of(judge_call(tool, GOOD, GRANTED, Policy())) is ErrorCode.NOT_PERMITTED
    assert code_of(judge_call(tool, GOOD, plus, policy)) is ErrorCode.NOT_PERMITTED
    both = replace(GRANTED, features=frozenset({"plus", "beta"}))
    assert judge_call(tool, GOOD, both, policy).permission is Permission.AUTO


@feature("The gate", "Admins can raise levels but never lower them", "tools/toolbox/permissions.py")
def test_an_admin_can_raise_a_level_but_never_lower_it() -> None:
    raised = replace(GRANTED, raised={NAME: Level.WRITE})
    verdict = judge_call(Echo(), GOOD, raised, Policy())
    assert (verdict.permission, verdict.level) == (Permission.ASK, Level.WRITE)
    assert verdict.reason == "an admin raised the level from read to write"
    assert (
        judge_call(Echo(level=Level.DESTRUCTIVE), GOOD, raised, Policy()).level is Level.DESTRUCTIVE
    )


def test_an_open_world_read_needs_approval_to_reach_an_unlisted_host() -> None:
    class Fetch(Echo):
        open_world = True

        def hosts(self, params: Any) -> frozenset[str] | None:
            return frozenset({params.text})

    policy = Policy(allowed_hosts=frozenset({"example.com"}))
    assert (
        judge_call(Fetch(), {"text": "EXAMPLE.com"}, GRANTED, policy).permission is Permission.AUTO
    )
    beyond = judge_call(Fetch(), {"text": "evil.example.com"}, GRANTED, policy)
    assert beyond.permission is Permission.ASK
    assert "evil.example.com" in beyond.reason
    assert judge_call(Echo(open_world=True), GOOD, GRANTED, policy).permission is Permission.ASK


def test_a_call_with_invalid_params_is_forbidden_before_approval() -> None:
    tool = Echo(level=Level.WRITE)
    assert code_of(judge_call(tool, {}, GRANTED, Policy())) is ErrorCode.MISSING_PARAM
    assert (
        code_of(judge_call(tool, "not json", GRANTED, Policy())) is ErrorCode.INVALID_TOOL_ARGUMENTS
    )
    assert code_of(judge_call(tool, {"text": ""}, GRANTED, Policy())) is ErrorCode.INVALID_PARAMETER


def test_a_crashing_validation_forbids_the_call_and_hides_why() -> None:
    class Crashing(Echo):
        def validate(self, params: Any) -> None:
            raise RuntimeError("password=hunter2")

    verdict = judge_call(Crashing(), GOOD, GRANTED, Policy())
    assert code_of(verdict) is ErrorCode.TOOL_EXECUTION_FAILED
    assert "hunter2" not in verdict.reason


@feature(
    "Tool contract", "A tool checks rules that its schema cannot express", "tools/contract/tool.py"
)
def test_a_tool_can_refuse_params_that_its_schema_allows() -> None:
    class Picky(Echo):
        def validate(self, params: Any) -> None:
            raise ToolError(ErrorCode.OPERATION_NOT_ALLOWED, "Not on Sundays.", attempted=False)

    assert code_of(judge_call(Picky(), GOOD, GRANTED, Policy())) is ErrorCode.OPERATION_NOT_ALLOWED


STRICTNESS = (Permission.AUTO, Permission.ASK, Permission.FORBIDDEN)


@feature(
    "The gate",
    "Random configurations get the documented verdict and reason",
    "tools/toolbox/permissions.py",
)
@settings(max_examples=500)
@given(CONFIGURATIONS)
def test_the_gate_judges_any_configuration_as_documented(call: Configuration) -> None:
    assert_as_documented(call)


@settings(max_examples=200)
@given(CONFIGURATIONS, GRANTS)
def test_additional_limits_never_make_a_verdict_more_permissive(
    call: Configuration, more: Grants
) -> None:
    grants = call.grants
    name = call.tool.name if call.tool else ""
    limits = (*grants.conditions.get(name, ()), *more.conditions.get(name, ()))
    bound = replace(
        grants,
        capabilities=grants.capabilities & more.capabilities,
        features=grants.features & more.features,
        conditions={**grants.conditions, name: limits},
        stopped={**grants.stopped, **more.stopped},
    )
    stricter = judged(replace(call, grants=bound))
    assert STRICTNESS.index(stricter.permission) >= STRICTNESS.index(judged(call).permission)
