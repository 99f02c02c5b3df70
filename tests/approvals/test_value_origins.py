"""A card lists each value from outside with a link to the call that returned it, and has a table of
all values."""

from __future__ import annotations

import pytest
from django.test import Client

from agents.runs.models import ToolCall
from agents.web.cards.origins import MAX_LINES
from tests.features import feature
from tests.workshop import Workshop, asking, call
from tools.toolbox.provenance import Provenance, SeenIn, Sighting

pytestmark = pytest.mark.django_db(transaction=True)

HOSTILE = "<script>alert(1)</script>\u202e.example"


def show_card(
    workshop: Workshop, *sightings: Sighting, is_partial: bool = False, unsearched: int = 0
) -> str:
    """Show a waiting card whose call has these recorded origins."""
    record = workshop.record()
    workshop.play(
        asking(call("data.updateRecord", record_id=record.pk, changes={"status": "inactive"}))
    )
    run = workshop.work()
    card = workshop.card(run)
    known = Provenance(sightings, unsearched, is_partial)
    ToolCall.objects.filter(pk=card.tool_call_id).update(provenance=known.as_json())
    client = Client()
    client.force_login(workshop.approver.user)
    return " ".join(client.get(f"/approvals/{card.pk}/").content.decode().split())


def see(value: str, path: str = "changes.email", **more: object) -> Sighting:
    given = {
        "origin": SeenIn.OUTSIDE,
        "tool": "web.fetchPage",
        "title": "Read a web page",
        "call_id": 7,
        "run_id": 3,
    }
    return Sighting(path, path, value, **(given | more))  # type: ignore[arg-type]


@feature(
    "The gate",
    "Cards name values from outside, with the call that brought them",
    "agents/web/cards/origins.py",
)
def test_a_value_from_outside_links_to_the_call_that_returned_it(workshop: Workshop) -> None:
    html = show_card(workshop, see("evil.example", stands_out=True))
    assert '<li class="stands-out">' in html
    assert (
        '<bdi class="value">evil.example</bdi> in <bdi class="field-name">changes.email</bdi> was first seen in'
        in html
    )
    assert '<a href="/runs/3/?call=7#call-7">Read a web page</a>.' in html


def test_a_card_without_outside_values_has_no_from_outside_line(workshop: Workshop) -> None:
    html = show_card(
        workshop, see("office@acme.example", origin=SeenIn.OWN, title="Search records")
    )
    assert "From outside" not in html
    assert "your own data: <a" in html


def test_equal_values_share_a_line_and_values_beyond_the_limit_are_folded(
    workshop: Workshop,
) -> None:
    same = [see("evil.example", f"rows.{number}.host") for number in range(3)]
    others = [see(f"host{number}.example", f"more.{number}") for number in range(MAX_LINES)]
    html = show_card(workshop, *same, *others)
    assert "rows.0.host</bdi> and 2 more was first seen" in html
    assert html.count("<b>From outside:</b>") == MAX_LINES
    assert "1 more from outside, listed below." in html
    assert 'class="all-origins" open' in html


def test_a_stored_value_is_labeled_and_limits_of_the_search_are_stated(workshop: Workshop) -> None:
    html = show_card(workshop, see("evil.example", is_stored=True), is_partial=True, unsearched=4)
    assert "</a>, and an earlier call stored it." in html
    assert "4 more values not listed." in html
    assert "Only the newest results were searched." in html


def test_outside_texts_are_escaped(workshop: Workshop) -> None:
    html = show_card(workshop, see(HOSTILE, title=HOSTILE, path=f"x.{HOSTILE}"))
    assert HOSTILE not in html
    assert "<script>alert" not in html
    assert "\u202e" not in html
