"""Outside requests are signed with the organisation's newest credentials, and these are nowhere else."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
from django.conf import settings as site
from django.test import Client
from django.urls import reverse

from agents.desk.transcript import AsJson, AsMarkdown, read_entries
from agents.models import Approval, AuditEntry, Event, Message, Pass, Run, RunStatus, ToolCall
from agents.sources import ask
from gadget_site.logs import logging_settings
from tests.connections.api import Api
from tests.connections.connecting import connect_api, offer, read, set_credentials
from tests.engine.workshop import Workshop, asking, call, calls, error_code, statuses
from tests.model_server import Answer, Call, ModelServer
from tools.connections.models import Authentication, Source, SourceTool

pytestmark = pytest.mark.django_db(transaction=True)

ADD, LIST = "crm.addContact", "crm.listContacts"
FIRST, SECOND = "first-token-of-ours-01", "second-token-of-ours-02"


@pytest.fixture
def source(workshop: Workshop, api: Api) -> Source:
    source = connect_api(workshop, api, authentication=Authentication.BEARER, service="contacts")
    offer(workshop, source, ADD, LIST)
    return source


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """What the log of this installation would say at DEBUG."""
    written: list[str] = []
    handler = logging.Handler(logging.DEBUG)
    formatter = logging_settings(site.SITE)["formatters"]["line"]
    handler.setFormatter(formatter.pop("()")(**formatter))
    handler.emit = lambda record: written.append(handler.format(record))  # type: ignore[method-assign]
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield written
    root.removeHandler(handler)
    root.setLevel(before)


def test_a_changed_token_is_used_by_the_next_call(workshop: Workshop, api: Api, source: Source) -> None:
    workshop.play(asking(call(LIST)))
    for token in (FIRST, SECOND):
        set_credentials(workshop.organization, "contacts", token=token)
        assert statuses(workshop.work()) == ["succeeded"]
    sent = [request.headers["authorization"] for request in api.received]
    assert sent == [f"Bearer {FIRST}", f"Bearer {SECOND}"]


def test_a_token_that_is_changed_while_a_card_is_open_voids_no_card(
    workshop: Workshop, api: Api, source: Source
) -> None:
    set_credentials(workshop.organization, "contacts", token=FIRST)
    workshop.play(asking(call(ADD, name="Ada")))
    run = workshop.work()
    set_credentials(workshop.organization, "contacts", token=SECOND)
    workshop.approve(workshop.card(run))
    assert statuses(workshop.drive(run)) == ["succeeded"]
    assert [request.headers["authorization"] for request in api.received] == [f"Bearer {SECOND}"]


def test_without_a_token_nothing_is_sent_and_the_service_is_named(workshop: Workshop, api: Api, source: Source) -> None:
    workshop.play(asking(call(LIST)))
    run = workshop.work()
    assert error_code(calls(run)[0]) == "UNAUTHORIZED"
    assert "'contacts'" in calls(run)[0].content
    assert api.received == []


def test_the_token_is_in_no_row_prompt_page_transcript_or_line_of_the_log(
    workshop: Workshop, api: Api, source: Source, model: ModelServer, lines: list[str]
) -> None:
    """Though the API says it back in every answer, and in its description."""
    set_credentials(workshop.organization, "contacts", token=FIRST)
    api.answer = {"you said": f"Bearer {FIRST}", FIRST: [FIRST]}
    model.script(
        Answer(calls=(Call(LIST.replace(".", "__"), {}),)),
        Answer(calls=(Call(ADD.replace(".", "__"), {"name": "Ada"}),)),
        Answer(text="Done."),
    )
    run = workshop.work()
    assert run.status == RunStatus.WAITING
    workshop.approve(workshop.card(run))
    run = workshop.drive(run)
    assert statuses(run) == ["succeeded", "succeeded"]
    assert [request.headers["authorization"] for request in api.received] == [f"Bearer {FIRST}"] * 2
    asked = ask(read(source))
    kinds = (ToolCall, Event, Approval, Pass, Message, AuditEntry, Run, SourceTool, Source)
    entries = read_entries(run.pk, 0, run.next_event_seq, set())
    places = {
        "rows": "".join(str(list(kind.objects.values())) for kind in kinds),
        "prompts": json.dumps(model.requests),
        "transcript": "".join(form.entry(entry) for form in (AsJson(), AsMarkdown()) for entry in entries),
        "pages": "".join(pages_of(workshop, run)),
        "log": "\n".join(lines),
        "test": asked.told + asked.problem,
    }
    for place, text in places.items():
        assert FIRST not in text, place
        assert text, place
    assert "[hidden]" in places["prompts"]
    assert "you said" in places["pages"]


def pages_of(workshop: Workshop, run: Run) -> Iterator[str]:
    client = Client()
    client.force_login(workshop.admin.user)
    addresses = [reverse("run", args=(run.pk,)), reverse("tools"), "/api/tools?limit=200", f"/api/runs/{run.pk}"]
    addresses += [reverse("call", args=(run.pk, each.pk)) for each in calls(run)]
    addresses += [reverse("approval", args=(card.pk,)) for card in Approval.objects.filter(run=run)]
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code == 200, address
        yield answer.content.decode()
