"""The real assistants, each set up as the guide says: a command waits, and runs only after it is
approved.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agents.runs.models import CallStatus, ToolCall
from tests import sampling
from tests.awaiting import await_that
from tests.clients.machine import can_separate, make_machine
from tests.faults.site import Site
from tests.features import feature
from tests.gateway.live.assistants import (
    ALL,
    CLAUDE,
    CODEX,
    COPILOT,
    Assistant,
    Office,
    end,
    read_block,
)
from tests.gateway.live.hook import decide_next, list_cards
from tests.gateway.live.model_stub import serve_model
from tests.node import ASSISTANTS, require_node

pytestmark = [
    pytest.mark.skipif(
        not sampling.is_whole(), reason="the whole set starts the assistants, a minute each"
    ),
    pytest.mark.skipif(
        not can_separate(), reason="another user with other folders can be tried only by root"
    ),
]
SET_UPS = [(each, file) for each in ALL for file in each.files if file != CODEX.files[1]]


@pytest.fixture
def office(site: Site, secret: str) -> Iterator[Office]:
    require_node(ASSISTANTS)
    with make_machine() as machine, serve_model() as model:
        yield Office(machine, model, site.installation.url, secret)


@feature(
    "Agents elsewhere",
    "Coding assistants that are set up as the guide says run a command only once it is approved",
    "docs/hooks.md",
)
@pytest.mark.parametrize(("assistant", "file"), SET_UPS, ids=[file for _, file in SET_UPS])
def test_a_command_runs_only_after_its_approval(
    site: Site, office: Office, assistant: Assistant, file: str
) -> None:
    office.install(file)
    denied, first = office.touch(assistant, "denied")
    approved, second = office.touch(assistant, "approved")
    office.model.calls = [first, second]
    before = list_cards()
    process = office.start(assistant)
    before.add(decide_next(site, before, approves=False).pk)
    decide_next(site, before, approves=True)
    said = end(process)
    assert (denied.exists(), approved.exists()) == (False, True), said
    statuses = list(ToolCall.objects.order_by("pk").values_list("status", flat=True))
    assert statuses == [CallStatus.DENIED, CallStatus.SUCCEEDED], said


@pytest.mark.parametrize("assistant", ALL, ids=lambda each: each.name)
def test_an_open_ask_is_closed_when_the_assistant_ends_its_session(
    office: Office, assistant: Assistant
) -> None:
    """The hook denies with a ticket, the model gives up, and the assistant tells the hook that its
    session has ended."""
    office.install(assistant.files[0])
    office.let_hook_wait(22)
    path, made = office.touch(assistant, "later")
    office.model.calls = [made]
    said = end(office.start(assistant))
    assert not path.exists(), said
    closed = ToolCall.objects.filter(status=CallStatus.CANCELLED)
    await_that(lambda: closed.count() == ToolCall.objects.count() == 1, "the ask is closed", 30)


@feature(
    "Agents elsewhere",
    "`gadget_hook.py check --live` sees the assistant's own call held",
    "static/clients/gadget_hook.py",
)
@pytest.mark.parametrize("assistant", ALL, ids=lambda each: each.name)
def test_the_live_check_sees_the_assistants_own_call(office: Office, assistant: Assistant) -> None:
    office.install(assistant.files[0])
    office.model.plays_check(assistant.shell)
    code, output = office.check(assistant, "--live")
    assert "ok       the assistant's own call was held: ask" in output
    assert "not verified" not in output
    assert (code, "PROBLEM" in output) == (0, False), output
    assert ToolCall.objects.filter(status=CallStatus.CANCELLED).count() == 2, (
        "its own ask, and the assistant's"
    )


def test_a_check_without_a_call_of_the_assistant_reports_the_hook_as_not_verified(
    office: Office,
) -> None:
    office.install(CLAUDE.files[0])
    _, output = office.check(CLAUDE)
    assert "The hook is not verified: no call of the assistant came to it." in output


@pytest.mark.parametrize(
    ("assistant", "file"),
    [
        (CODEX, "~/.codex/hooks.json"),
        (COPILOT, "~/.copilot/hooks.json"),
        (COPILOT, ".github/hooks/gadget.json"),
    ],
    ids=["codex", "copilot", "copilot in a repository"],
)
def test_the_live_check_reports_an_assistant_that_does_not_use_the_hook(
    office: Office, assistant: Assistant, file: str
) -> None:
    office.install(file)
    office.model.plays_check(assistant.shell)
    code, output = office.check(assistant, "--live")
    assert (code, "PROBLEM  no call of the assistant came to Gadget" in output) == (1, True), output
    assert "The hook is not verified" in output


def test_codex_uses_a_users_hooks_only_while_they_are_trusted_and_unedited(
    site: Site, office: Office
) -> None:
    own = CODEX.files[1]
    office.install(own)
    office.trust_hooks()
    assert_one_held(site, office, CODEX)
    office.machine.write_at_home(own.removeprefix("~/"), read_block(own).replace("600", "601"))
    edited, call = office.touch(CODEX, "edited")
    office.model.calls = [call]
    end(office.start(CODEX))
    assert edited.exists(), "the guide says that Codex runs it without the hook"
    office.trust_hooks()
    assert_one_held(site, office, CODEX)


def assert_one_held(site: Site, office: Office, assistant: Assistant) -> None:
    denied, call = office.touch(assistant, "denied")
    office.model.calls = [call]
    before = list_cards()
    process = office.start(assistant)
    decide_next(site, before, approves=False)
    said = end(process)
    assert not denied.exists(), said
