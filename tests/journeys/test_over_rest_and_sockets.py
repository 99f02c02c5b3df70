"""The main job without a browser: REST and a socket with a token, and a model over real HTTP that
reads the results."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agents.runs.models import Approval, ApprovalStatus
from tests.awaiting import await_that
from tests.journeys.api_client import ApiClient, select_events
from tests.journeys.office import Office, load_events, load_run
from tests.model_server import Call, ModelServer, Response
from tests.workshop import asking, call
from tools.office.records.models import Record

SEARCH_ARGUMENTS = '{ "text":"Acme",   "limit" : 5 }'
REASON = "Borealis has just called us: leave “it” alone."


@pytest.fixture
def records(office: Office, model: ModelServer) -> list[Record]:
    """Create two records, and an employee whose model searches them, requests a change to each, and
    answers."""
    office.workshop.connect(model.url)
    records = [office.workshop.record(name=name) for name in ("Acme Corp", "Borealis Freight")]
    changes = [
        {"record_id": str(record.pk), "changes": {"status": "inactive"}} for record in records
    ]
    model.enqueue(
        Response(
            text="I look first.",
            calls=(
                Call("data.searchRecords", id="call_A", arguments=SEARCH_ARGUMENTS),
                Call("utility.calculate", {"operation": "add", "a": 1, "b": 2}, id="call_B"),
            ),
            extra={"reasoning_content": "Let me think."},
        ),
        Response(
            text="Both look inactive.",
            calls=tuple(
                Call("data.updateRecord", each, id=f"call_{place}")
                for place, each in enumerate(changes)
            ),
            style="one_delta",
        ),
        Response(text="One was changed. " * 20, hold="middle"),
    )
    return records


@pytest.mark.every_commit
def test_one_change_is_approved_one_is_denied_and_the_model_reads_both_results(
    office: Office, model: ModelServer, records: list[Record]
) -> None:
    operator, approver = office.api_client("operator"), office.api_client("approver")
    run_id = operator.start(office.workshop.employee.pk, "Set the inactive companies to inactive")
    with operator.socket(run_id) as socket:
        asked = socket.receive_until("run_waiting")
        office.await_bells(run_id)
        approve, deny = fetch_cards(approver, run_id)
        approved = approver.post(
            f"/approvals/{approve['id']}/approve", {"digest": approve["digest"]}
        )
        denied = approver.post(
            f"/approvals/{deny['id']}/deny", {"digest": deny["digest"], "reason": REASON}
        )
        assert (approved["decided_by"], denied["reason"]) == ("acme-approver", REASON)
        assert approved["status"] in ("approved", "consumed")
        heard = asked + socket.receive_until("assistant_delta")
        while heard[-1]["payload"]["pass_number"] < 3:
            heard += socket.receive_until("assistant_delta")
        assert load_run(run_id).pass_number == 2, "the third response is not recorded yet"
        model.wait_for_held()
        model.release()
        heard += socket.receive_until("run_finished")

    assert_changed_once(records, run_id)
    assert_received_as_stored(heard, run_id)
    assert_streamed(heard, run_id)
    assert_requests(model, records)
    ended = operator.get(f"/runs/{run_id}")
    assert (ended["status"], ended["exit_reason"]) == ("succeeded", "final_answer")
    assert ended["answer"].strip() == ("One was changed. " * 20).strip()
    assert [call["status"] for call in ended["tool_calls"]] == [
        "succeeded",
        "succeeded",
        "succeeded",
        "denied",
    ]
    assert ended["usage"]["input_tokens"] == 300
    by_rest = operator.get(f"/runs/{run_id}/events")
    assert [(event["seq"], event["type"]) for event in by_rest] == [
        (message["seq"], message["type"]) for message in select_events(heard)
    ]


def fetch_cards(approver: ApiClient, run_id: int) -> list[dict[str, Any]]:
    """Fetch the run's pending cards, the oldest first."""
    found = approver.get(f"/approvals?status=pending&run_id={run_id}")["items"]
    return sorted(found, key=lambda card: int(card["id"]))


def assert_changed_once(records: list[Record], run_id: int) -> None:
    now = [Record.objects.get(pk=record.pk) for record in records]
    assert [record.status for record in now] == ["inactive", "active"]
    assert [
        record.version - before.version for record, before in zip(now, records, strict=True)
    ] == [1, 0]
    cards = Approval.objects.filter(run_id=run_id).order_by("pk")
    assert [card.status for card in cards] == [ApprovalStatus.CONSUMED, ApprovalStatus.DENIED]


def assert_received_as_stored(heard: list[dict[str, Any]], run_id: int) -> None:
    """Check that every event arrived once, in order, with its stored payload."""
    stored = [(event.seq, event.type, event.payload) for event in load_events(run_id)]
    assert [(each["seq"], each["type"], each["payload"]) for each in select_events(heard)] == stored
    assert all(message["html"].startswith("<li") for message in select_events(heard))
    assert "csrf" not in "".join(message["html"] for message in heard)


def assert_streamed(heard: list[dict[str, Any]], run_id: int) -> None:
    """Check that the text arrived in pieces while it was written."""
    pieces = [message["payload"] for message in heard if message["type"] == "assistant_delta"]
    last = "".join(piece["text"] for piece in pieces if piece["pass_number"] == 3)
    assert last
    assert last in load_run(run_id).answer


def assert_requests(model: ModelServer, records: list[Record]) -> None:
    """Check the three requests: each has the whole history, with the model's own messages
    verbatim."""
    first, second, third = model.requests
    assert [
        tool["function"]["name"]
        for tool in first["tools"]
        if tool["function"]["name"].startswith("data")
    ] == [
        "data__bulkDelete",
        "data__searchRecords",
        "data__updateRecord",
    ]
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    assert first["messages"][1]["content"] == "Set the inactive companies to inactive"
    said, *results = second["messages"][2:]
    assert said == {
        "role": "assistant",
        "content": "I look first.",
        "reasoning_content": "Let me think.",
        "tool_calls": [
            wire_call("call_A", "data__searchRecords", SEARCH_ARGUMENTS),
            wire_call("call_B", "utility__calculate", '{"operation": "add", "a": 1, "b": 2}'),
        ],
    }
    assert [result["tool_call_id"] for result in results] == ["call_A", "call_B"]
    assert "Acme Corp" in results[0]["content"]
    assert third["messages"][: len(second["messages"])] == second["messages"]
    asked, done, refused = third["messages"][len(second["messages"]) :]
    assert [call["function"]["name"] for call in asked["tool_calls"]] == ["data__updateRecord"] * 2
    assert (done["tool_call_id"], refused["tool_call_id"]) == ("call_0", "call_1")
    assert "Acme Corp" in done["content"]
    assert "APPROVAL_DENIED" in refused["content"]
    assert REASON in refused["content"]
    assert records[1].name not in refused["content"]


def wire_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_person_edits_over_rest_and_the_model_reads_the_edit(
    office: Office, model: ModelServer, records: list[Record]
) -> None:
    approver = office.api_client("approver")
    run_id = approver.start(office.workshop.employee.pk, "Set the inactive companies to inactive")
    office.await_cards(run_id, 2)
    change, other = fetch_cards(approver, run_id)
    params = {**change["params"], "changes": {"status": "pending"}}
    edited = approver.post(
        f"/approvals/{change['id']}/approve", {"digest": change["digest"], "params": params}
    )
    assert edited["status"] == "superseded"
    assert Record.objects.get(pk=records[0].pk).status == "active"
    fresh = approver.get(f"/approvals/{edited['next_approval_id']}")
    assert fresh["digest"] != change["digest"]
    stale = approver.post(
        f"/approvals/{fresh['id']}/approve", {"digest": change["digest"]}, status=412
    )
    assert stale["code"] == "stale_digest"
    approver.post(f"/approvals/{fresh['id']}/approve", {"digest": fresh["digest"]})
    approver.post(f"/approvals/{other['id']}/deny", {"digest": other["digest"]})
    model.wait_for_held()
    model.release()
    office.await_end(run_id)
    assert Record.objects.get(pk=records[0].pk).status == "pending"
    told = [
        message["content"]
        for message in model.requests[2]["messages"]
        if message.get("tool_call_id") == "call_0"
    ]
    assert "A person changed the params" in told[0]


def test_a_message_resumes_an_ended_run(office: Office, model: ModelServer) -> None:
    office.workshop.connect(model.url)
    model.enqueue(Response(text="First answer."), Response(text="Second answer."))
    operator = office.api_client("operator")
    run_id = operator.start(office.workshop.employee.pk, "Begin")
    office.await_end(run_id)
    operator.post(f"/runs/{run_id}/messages", {"text": "And now in French"})
    await_that(lambda: load_run(run_id).answer == "Second answer.", "the run went on")
    assert [message["role"] for message in model.requests[1]["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert model.requests[1]["messages"][-1]["content"] == "And now in French"
    with operator.socket(run_id) as socket:
        heard = [socket.next()["type"] for _ in load_events(run_id)]
    assert heard.count("run_finished") == 2


def test_only_one_of_fifty_simultaneous_approvals_over_http_succeeds(office: Office) -> None:
    office.workshop.play(asking(call("probe.effect", name="pay")))
    run = office.submit()
    (card,) = office.await_cards(run.pk)
    approver = office.api_client("approver")
    with ThreadPoolExecutor(50) as people:
        sent = [
            people.submit(
                approver.post_for_status, f"/approvals/{card.pk}/approve", {"digest": card.digest}
            )
            for _ in range(50)
        ]
    assert Counter(each.result() for each in sent) == {200: 1, 409: 49}
    office.await_end(run.pk)
    assert list(office.recorder.effects.values()) == [1]
