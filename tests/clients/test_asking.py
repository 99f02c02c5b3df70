"""The hook asks, waits and redeems: a call runs only after an approval of exactly this call was
redeemed."""

from __future__ import annotations

import json
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.clients.conftest import SECRET
from tests.clients.gadget import URL, AskServer
from tests.clients.test_reading import CLAUDE

ASK, POLL, REDEEM = "POST /api/asks", "GET /api/asks/7", "POST /api/asks/7/redeem"


@pytest.fixture
def pauses(hook: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Collect the hook's pauses instead of waiting."""
    found: list[float] = []
    monkeypatch.setattr(
        hook, "time", SimpleNamespace(sleep=found.append, monotonic=time.monotonic, time=time.time)
    )
    return found


@pytest.fixture
def config(gadget: AskServer) -> dict[str, Any]:
    return {"url": gadget.address, "key": SECRET, "timeout_s": 60}


@pytest.fixture
def call(hook: ModuleType) -> Any:
    return hook.read_call(json.dumps(CLAUDE))


def test_an_approval_is_redeemed_before_the_call_proceeds(
    hook: ModuleType, gadget: AskServer, config: dict[str, Any], call: Any, pauses: list[float]
) -> None:
    gadget.statuses = ["approved"]
    assert hook.decide(config, call) == (True, "Approved by ada in Gadget.")
    assert gadget.paths == [ASK, REDEEM]
    assert gadget.sent[-1][2] == {"receipt": "signed"}
    assert pauses == []


def test_the_hook_polls_until_the_ask_is_decided(
    hook: ModuleType, gadget: AskServer, config: dict[str, Any], call: Any, pauses: list[float]
) -> None:
    gadget.statuses = ["waiting", "waiting", "waiting", "approved"]
    assert hook.decide(config, call)[0] is True
    assert gadget.paths == [ASK, POLL, POLL, POLL, REDEEM]
    assert pauses == [0.5, 0.5]


def test_no_request_takes_longer_than_the_assistant_waits(
    hook: ModuleType, gadget: AskServer, config: dict[str, Any], call: Any, pauses: list[float]
) -> None:
    for timeout_s, most in ((60, 25), (25, 10)):
        gadget.statuses = ["waiting", "denied"]
        hook.decide({**config, "timeout_s": timeout_s}, call)
        wait_s = float(gadget.sent[-1][1].partition("?wait_s=")[2])
        assert most - 1 < wait_s <= most


def test_the_ask_contains_the_whole_call(
    hook: ModuleType, gadget: AskServer, config: dict[str, Any]
) -> None:
    given = {"command": "make deploy", "description": "Deploy the shop"}
    call = hook.read_call(json.dumps({**CLAUDE, "tool_input": given}))
    gadget.statuses = ["denied"]
    hook.decide(config, call)
    assert gadget.sent[0][2] == {
        "action": "assistant.Bash",
        "params": {"tool": "Bash", "folder": "/shop", "input": given},
        "level": "destructive",
        "sentence": "Deploy the shop",
        "effect_key": call.effect_key,
        "audience": "gadget_hook",
        "expires_s": 24 * 3600,
    }


def test_the_hook_gives_up_before_the_assistant_does(
    hook: ModuleType, gadget: AskServer, config: dict[str, Any], call: Any, pauses: list[float]
) -> None:
    goes_on, reason = hook.decide({**config, "timeout_s": 15.5}, call)
    assert goes_on is False
    assert (
        reason == f"Nobody has decided yet (ask 7, {URL}). Try exactly the same call again later."
    )
    assert (gadget.paths, pauses) == ([ASK], [])


@pytest.mark.parametrize(
    ("status", "wrong", "reason"),
    [
        ("denied", {}, "ada denied this in Gadget: no reason given"),
        ("denied", {"reason": "Not on Fridays."}, "ada denied this in Gadget: Not on Fridays."),
        ("redeemed", {}, "was let through before, and its outcome is not known yet"),
        ("unknown", {}, "nobody knows its outcome"),
        ("expired", {}, "did not approve this: expired"),
        ("succeeded", {}, "did not approve this: succeeded"),
        ("of a later version", {}, "did not approve this"),
    ],
)
def test_a_call_without_an_approval_is_blocked(
    hook: ModuleType,
    gadget: AskServer,
    config: dict[str, Any],
    call: Any,
    pauses: list[float],
    status: str,
    wrong: dict[str, Any],
    reason: str,
) -> None:
    gadget.statuses, gadget.wrong = ["waiting", status], wrong
    goes_on, said = hook.decide(config, call)
    assert (goes_on, pauses) == (False, [])
    assert reason in said
    assert gadget.paths == [ASK, POLL]


@pytest.mark.parametrize(
    "wrong",
    [
        {"action": "assistant.Read"},
        {"params_digest": "0"},
        {"id": "7/../8"},
        {"id": None},
        {"id": "1" * 19},
    ],
)
def test_a_response_about_another_ask_blocks_the_call(
    hook: ModuleType, gadget: AskServer, config: dict[str, Any], call: Any, wrong: dict[str, Any]
) -> None:
    gadget.statuses, gadget.wrong = ["approved"], wrong
    with pytest.raises(hook.Blocked):
        hook.decide(config, call)
    assert gadget.paths == [ASK]


def test_a_response_that_is_not_an_object_blocks_the_call(
    hook: ModuleType, gadget: AskServer, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gadget, "answer", lambda *_: (200, b'["approved"]'))
    with pytest.raises(hook.Blocked, match="unknown format"):
        hook.send(config, "GET", "/api/asks/7")


@pytest.mark.parametrize("redemption", [(409, ""), (200, "approved"), (200, "cancelled")])
def test_a_receipt_that_is_refused_or_not_redeemed_blocks_the_call(
    hook: ModuleType,
    gadget: AskServer,
    config: dict[str, Any],
    call: Any,
    redemption: tuple[int, str],
) -> None:
    gadget.statuses, gadget.redemptions = ["approved"], [redemption]
    with pytest.raises(hook.Blocked):
        hook.decide(config, call)
    assert gadget.paths == [ASK, REDEEM]


@pytest.mark.parametrize(("do", "goes_on"), [("allow", None), ("deny", False)])
def test_a_call_decided_by_the_configuration_does_not_create_an_ask(
    hook: ModuleType,
    gadget: AskServer,
    config: dict[str, Any],
    call: Any,
    do: str,
    goes_on: bool | None,
) -> None:
    assert hook.decide({**config, "default": do}, call)[0] is goes_on
    assert gadget.paths == []


def test_the_ask_has_the_level_of_its_rule_and_is_destructive_without_a_rule(
    hook: ModuleType, gadget: AskServer, config: dict[str, Any], call: Any
) -> None:
    gadget.statuses = ["denied"]
    hook.decide({**config, "rules": [{"tool": "Bash", "do": "ask", "level": "write"}]}, call)
    hook.decide(config, call)
    assert [body["level"] for _, _, body in gadget.sent] == ["write", "destructive"]


OUTCOME = "POST /api/asks/7/outcome"


@pytest.mark.parametrize(
    ("event", "outcome"), [("PostToolUse", "succeeded"), ("PostToolUseFailure", "failed")]
)
def test_the_outcome_of_an_approved_call_is_reported(
    hook: ModuleType, gadget: AskServer, config: dict[str, Any], event: str, outcome: str
) -> None:
    gadget.statuses = ["redeemed"]
    call = hook.read_call(json.dumps({**CLAUDE, "hook_event_name": event}))
    hook.report(config, call)
    assert gadget.paths[1:] == [OUTCOME]
    assert gadget.sent[-1][2]["outcome"] == outcome


@pytest.mark.parametrize(
    ("statuses", "do"), [(["waiting"], "ask"), ([], "ask"), (["redeemed"], "allow")]
)
def test_a_call_that_is_undecided_or_decided_by_the_configuration_is_not_reported(
    hook: ModuleType,
    gadget: AskServer,
    config: dict[str, Any],
    call: Any,
    statuses: list[str],
    do: str,
) -> None:
    gadget.statuses = statuses
    hook.report({**config, "default": do}, call)
    assert OUTCOME not in gadget.paths
    assert (gadget.paths == []) is (do == "allow")


def test_the_last_second_is_reserved_for_the_response(
    hook: ModuleType, gadget: AskServer, config: dict[str, Any], call: Any, pauses: list[float]
) -> None:
    waiting = hook.ask(config, call, "write")
    assert hook.wait_for_decision(config, call, waiting, time.monotonic() + 0.9) == waiting
    assert gadget.paths == [ASK]
