"""Every surface that shows a value of a card also names the card's marks."""

from __future__ import annotations

import re

import pytest
from django.db.models.functions import Now
from django.test import Client

from agents.api import api
from agents.approvals import decisions
from agents.approvals.decisions import Decision
from agents.runs.engine.transaction import run_transaction
from agents.runs.events import ApprovalRequested, ToolStarted
from agents.runs.models import Approval, ApprovalStatus
from agents.urls import urlpatterns
from tests.features import feature
from tests.source_tree import ROOT, product
from tests.web.addresses import PLACEHOLDER
from tests.web.granting import waiting_card
from tests.world import World, streamed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

PLANTED = "H\u0430rbor-zq7x4k"
LABEL = "Mixed alphabets"

READERS_WITHOUT_MARKS = {
    "agents/gateway/redemptions.py": "shows only the digest of the params",
    "agents/gateway/requests.py": "takes an agent's request, and shows nothing",
    "agents/web/panel/call_inputs.py": "renders the inputs of a line, which has the marks",
    "agents/web/grants/form_rows.py": "compares a grant's values with those of its card, and shows none",
    "agents/web/views/decisions.py": "shows the card again, which has the marks",
}
"""Modules of surfaces that read params or previews but do not ask for marks, with the reason."""
TEMPLATES_WITHOUT_MARKS = {
    "notices/line.html": "the sentence of a notice, which has no values",
}
"""Templates that print the params or the sentence of a card without its marks, with the reason."""
SURFACES = ("admin", "api", "deliveries", "gateway", "mcp_server", "notices", "web", "webhooks")
READING = re.compile(r"\b(?:approval|card|call|row|one|each)\.(?:params|preview)\b")
PRINTING = re.compile(r"\.(?:params|sentence)[|,]")
NAMING_MARKS = re.compile(r"mark_labels\(|surroundings\(|\.marked|\.warnings")
ASKING = re.compile(r"\b(?:warnings\.card_marks import|find_params_marks\(|name_marks\()")


def plant(world: World) -> Approval:
    """Create a card with a value of mixed alphabets, and the event that requests the card."""
    changes = {"notes": PLANTED}
    card = world.card(params={"record_id": str(world.records[0].pk), "changes": changes})
    with run_transaction(card.run_id) as tx:
        tx.publish(ApprovalRequested.of(card, card.tool_call, card.expires_at))
    return card


def build_pages(card: Approval) -> dict[str, str]:
    """Return the addresses, by name, of all pages that need no id, or only the id of a run, a call
    or a card."""
    fillers = {
        "<int:run_id>": card.run_id,
        "<int:call_id>": card.tool_call_id,
        "<int:approval_id>": card.pk,
    }
    found = {}
    for pattern in urlpatterns:
        route = str(pattern.pattern)
        if set(PLACEHOLDER.findall(route)) <= fillers.keys():
            path = PLACEHOLDER.sub(lambda place: str(fillers[place[0]]), route)
            found[str(pattern.name)] = f"/{path}"
    found["history"] = "/approvals/?history=1"
    found["search-card"] = f"/search/?q=card+{card.pk}"
    return found


def build_api_addresses(card: Approval) -> dict[str, str]:
    """Return the addresses, by path, of all REST reads that need no id, or only the id of a run, a
    call or a card."""
    ids = {"run_id": card.run_id, "call_id": card.tool_call_id, "approval_id": card.pk}
    found = {}
    for path, methods in api.get_openapi_schema()["paths"].items():
        if "get" in methods and set(re.findall(r"{(\w+)}", path)) <= ids.keys():
            found[path] = path.format(**ids)
    return found


def read(client: Client, path: str) -> str:
    """Return the text of the response; values that JSON escapes are decoded."""
    response = client.get(path)
    if response.status_code != 200:
        return ""
    text = streamed(response) if response.streaming else response.content.decode()
    return re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)


def shows_value(text: str) -> bool:
    """Return True if the text contains the planted value; odd letters within it may be framed."""
    return "zq7x4k" in text


def find_unmarked(
    client: Client, pages: dict[str, str], label: str = LABEL
) -> tuple[set[str], set[str]]:
    """Return the names of all pages that show the planted value, and the names of those that show
    it without its mark."""
    texts = {name: read(client, path) for name, path in pages.items()}
    showing = {name for name, text in texts.items() if shows_value(text)}
    return showing, {name for name in showing if label not in texts[name]}


@feature(
    "The gate",
    "Every page that shows a value of a card names the card's marks",
    "agents/approvals/warnings/card_marks.py",
)
@pytest.mark.parametrize("is_decided", [False, True], ids=["waiting", "decided"])
def test_each_page_with_a_value_of_a_card_names_its_marks(world: World, is_decided: bool) -> None:
    card = plant(world)
    if is_decided:
        decisions.deny(world.member("approver"), card.pk, Decision(card.digest))
    showing, unmarked = find_unmarked(world.client("admin"), build_pages(card))
    assert {"approval", "card", "call", "transcript-json", "transcript-markdown"} <= showing
    assert {"playback", "playback-export", "run", "search-card"} <= showing
    assert ({"history"} if is_decided else {"approvals", "home"}) <= showing
    assert not unmarked


def test_each_rest_operation_with_a_value_of_a_card_names_its_marks(world: World) -> None:
    card = plant(world)
    showing, unmarked = find_unmarked(world.client("admin"), build_api_addresses(card))
    assert {"/api/approvals", "/api/approvals/{approval_id}", "/api/runs/{run_id}"} <= showing
    assert {"/api/runs/{run_id}/events", "/api/tool_calls/{call_id}"} <= showing
    assert not unmarked


def test_a_page_without_the_mark_is_found(world: World) -> None:
    card = plant(world)
    pages = {"call": f"/api/tool_calls/{card.tool_call_id}"}
    assert find_unmarked(world.client("admin"), pages, "Other") == ({"call"}, {"call"})


def read_call(world: World, query: str) -> dict[str, str]:
    """Create a read with this query, and return the texts of the pages and the REST operations
    about it."""
    call = world.call(world.run(), params={"query": query})
    with run_transaction(call.run_id) as tx:
        tx.publish(ToolStarted.of(call, None, ""))
    card = Approval(run_id=call.run_id, tool_call=call, pk=0)
    addresses = {**build_pages(card), **build_api_addresses(card)}
    client = world.client("admin")
    return {name: read(client, path) for name, path in addresses.items()}


def test_each_surface_with_a_value_of_a_call_without_a_card_names_its_marks(world: World) -> None:
    texts = {name: text for name, text in read_call(world, PLANTED).items() if shows_value(text)}
    assert {"call", "run", "playback", "transcript-json", "transcript-markdown"} <= texts.keys()
    assert {"/api/runs/{run_id}", "/api/runs/{run_id}/events"} <= texts.keys()
    assert not [name for name, text in texts.items() if LABEL not in text]


def test_surfaces_with_an_honest_value_of_a_call_do_not_have_a_mark(world: World) -> None:
    texts = read_call(world, "Harbor-zq7x4k")
    assert shows_value(texts["call"])
    assert not [name for name, text in texts.items() if LABEL in text]


def test_lines_about_approved_cards_name_their_marks(world: World) -> None:
    card = plant(world)
    decisions.approve(world.member("approver"), card.pk, Decision(card.digest, grace_s=60))
    made = world.standing_grant()
    Approval.objects.filter(pk=plant(world).pk).update(
        status=ApprovalStatus.APPROVED,
        standing_grant=made,
        decided_by=world.users["approver"],
        decided_at=Now(),
    )
    client = world.client("approver")
    assert LABEL in read(client, "/approvals/").partition("data-undoable")[2]
    assert LABEL in read(client, "/grants/").partition(f'id="grant-{made.pk}"')[2]
    new = {"record_id": str(world.records[0].pk), "changes": {"email": "ann@new.example"}}
    form = read(client, f"/grants/new/?card={waiting_card(world, **new).pk}")
    assert form.partition('class="covers"')[2].count("Marked: New here") == 2


def list_readers() -> dict[str, bool]:
    """Return the modules of surfaces that read params, previews or sentences, each with True if the
    module asks for marks."""
    found = {}
    for module in product():
        folder = module.name.split(".")[1:2]
        is_surface = module.name.startswith("agents.") and folder[0] in SURFACES
        if is_surface and READING.search(module.text):
            found[module.place] = ASKING.search(module.text) is not None
    return found


def test_each_module_that_reads_the_params_of_cards_asks_for_marks_or_says_why_not() -> None:
    readers = list_readers()
    assert readers["agents/api/approvals.py"]
    assert {place for place, asks in readers.items() if not asks} == READERS_WITHOUT_MARKS.keys()


def test_each_template_that_prints_the_params_of_cards_names_marks_or_says_why_not() -> None:
    folder = ROOT / "templates"
    texts = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.html")}
    printing = {place for place, text in texts.items() if PRINTING.search(text)}
    naming = {place for place in printing if NAMING_MARKS.search(texts[place])}
    assert {"cards/open.html", "cards/decided.html", "approvals/row.html"} <= naming
    assert printing - naming == TEMPLATES_WITHOUT_MARKS.keys()
