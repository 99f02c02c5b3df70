"""A call that carries other requests is destructive, and its card lists each of them."""

from __future__ import annotations

import pytest

from tests.features import feature
from tests.tools.connections.api import Api, operation
from tests.tools.connections.connecting import connect_api, offer, row_of
from tests.tools.connections.test_cards_of_sources import shown
from tests.workshop import Workshop, asking, call, calls, statuses
from tools.connections.models import Source, SourceTool
from tools.contract import Level

pytestmark = pytest.mark.django_db(transaction=True)

REQUEST = {
    "type": "object",
    "properties": {"method": {"type": "string"}, "path": {"type": "string"}},
}
SENT = [{"method": "DELETE", "path": "/contacts/7"}, {"method": "GET", "path": "/contacts"}]


@pytest.fixture
def source(workshop: Workshop, api: Api) -> Source:
    requests = {"type": "array", "items": REQUEST}
    api.paths["/many"] = {"post": operation("sendMany", "Send many", requests=requests)}
    api.paths["/free"] = {"post": operation("sendFree", "Send anything", what={})}
    return connect_api(workshop, api)


@feature(
    "Tools from API descriptions",
    "A call that carries other requests is destructive, and its card lists them",
    "tools/contract/embedded_requests.py, agents/runs/engine/cards.py",
)
def test_a_batch_is_destructive_and_its_card_lists_the_requests(
    workshop: Workshop, api: Api, source: Source
) -> None:
    assert row_of(source, "crm.sendMany").definition["level_reason"] == (
        "it may embed other requests: its params contain methods and paths of other requests"
    )
    offer(workshop, source, "crm.sendMany")
    workshop.play(asking(call("crm.sendMany", requests=SENT)))
    run = workshop.work()
    card = workshop.card(run)
    assert card.level == Level.DESTRUCTIVE
    assert "carries 2 other requests: DELETE /contacts/7; GET /contacts" in card.why
    assert [target["label"] for target in card.preview["targets"]] == [
        "DELETE /contacts/7",
        "GET /contacts",
    ]
    html = shown(workshop, card)
    assert "DELETE /contacts/7" in html
    assert "2 requests" in html
    assert "/contacts/7 <span" not in html, "a number behind a path would read as a part of it"
    assert api.received == []
    workshop.approve(card, confirm="2")
    assert statuses(workshop.drive(run)) == ["succeeded"]


def test_a_call_with_undeclared_inner_requests_is_destructive(
    workshop: Workshop, source: Source
) -> None:
    offer(workshop, source, "crm.sendFree")
    workshop.play(
        asking(
            call("crm.sendFree", what="nothing"), call("crm.sendFree", what={"defaults": SENT[0]})
        )
    )
    run = workshop.work()
    assert [row.level for row in calls(run)] == ["write", "destructive"]


def test_an_admin_can_lower_the_level_of_a_batch_and_sees_the_reason(
    workshop: Workshop, source: Source
) -> None:
    offer(workshop, source, "crm.sendMany", level=Level.WRITE)
    workshop.play(asking(call("crm.sendMany", requests=SENT)))
    card = workshop.card(workshop.work())
    assert card.level == Level.WRITE
    assert card.why.startswith("this changes data; carries 2 other requests")
    assert len(card.preview["targets"]) == 2


def test_a_level_set_before_the_reason_was_shown_is_ignored(
    workshop: Workshop, source: Source
) -> None:
    row = row_of(source, "crm.sendMany")
    definition = {**row.definition, "level": "write", "level_reason": "POST is write level"}
    SourceTool.objects.filter(pk=row.pk).update(definition=definition, inferred_level="write")
    offer(workshop, source, "crm.sendMany", level=Level.WRITE)
    workshop.play(asking(call("crm.sendMany", requests=SENT)))
    assert workshop.card(workshop.work()).level == Level.DESTRUCTIVE
