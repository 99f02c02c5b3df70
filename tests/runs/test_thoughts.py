"""Text between <think> tags is stored and shown as a thought, and is not used for anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.runs.models import Event, RunStatus
from agents.web.panel.lines import render_lines
from tests.model_server import Call, ModelServer, Response
from tests.workshop import Workshop, passes, payloads

pytestmark = pytest.mark.django_db(transaction=True)


def messages_of_request(model: ModelServer, number: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = model.requests[number]["messages"]
    return messages


@pytest.mark.parametrize("streamed", [True, False])
def test_a_thought_is_stored_separately_and_never_sent_back(
    workshop: Workshop, model: ModelServer, streamed: bool
) -> None:
    sleep = Call("probe.sleep", {"ms": 0})
    model.script(
        Response(
            text="<think>I should\nwait.</think>\n\nWaiting.", calls=(sleep,), streamed=streamed
        ),
        Response(text="<think>Now I know.</think>All done.", streamed=streamed),
    )
    run = workshop.work()
    assert (run.status, run.answer) == (RunStatus.SUCCEEDED, "All done.")
    assert [(each.text, each.thought) for each in passes(run)] == [
        ("Waiting.", "I should\nwait."),
        ("All done.", "Now I know."),
    ]
    assert "think" not in json.dumps(messages_of_request(model, 1)[1:])
    assert [line["text"] for line in payloads(run, "assistant_message")] == [
        "Waiting.",
        "All done.",
    ]
    assert [line["text"] for line in payloads(run, "assistant_thought")] == [
        "I should\nwait.",
        "Now I know.",
    ]
    thought = render_lines(run.pk, Event.objects.filter(run=run, type="assistant_thought"))[0]
    assert "<summary>Reasoning in pass 1</summary>" in thought.html
    assert "<details open" not in thought.html


def test_a_long_thought_is_truncated(workshop: Workshop, model: ModelServer) -> None:
    model.script(Response(text=f"<think>{'x' * 150_000}</think>Yes.", streamed=False))
    run = workshop.work()
    assert run.answer == "Yes."
    assert len(passes(run)[0].thought) == 100_000
    (line,) = payloads(run, "assistant_thought")
    assert (len(line["text"]), line["truncated"]) == (8_000, True)
