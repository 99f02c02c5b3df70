"""Cards and the panel name a connected tool, and a card says why the tool could no longer start."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from agents.runs.models import Approval
from agents.web.panel.lines import render_lines
from tests.features import feature
from tests.tools.connections.api import Api, operation
from tests.tools.connections.connecting import connect_api, leave, offer, read
from tests.workshop import Workshop, asking, call
from tools.connections.changes import bump_tools_version
from tools.connections.models import Source
from tools.contract import Level

pytestmark = pytest.mark.django_db(transaction=True)

ADD = "crm.addContact"


@pytest.fixture
def source(workshop: Workshop, api: Api) -> Source:
    source = connect_api(workshop, api)
    offer(workshop, source, ADD)
    return source


@pytest.fixture
def card(workshop: Workshop, source: Source) -> Approval:
    workshop.play(asking(call(ADD, name="Ada")))
    return workshop.card(workshop.work())


def shown(workshop: Workshop, card: Approval) -> str:
    """Return the HTML of the card's page as the approver gets it."""
    client = Client()
    client.force_login(workshop.approver.user)
    return " ".join(client.get(f"/approvals/{card.pk}/").content.decode().split())


def obstacle(html: str) -> str:
    """Return the card's text that says why its call cannot start, or an empty text if it can."""
    _, found, rest = html.partition('class="obstacle"')
    return rest.partition("<span>")[2].partition("</span>")[0] if found else ""


def titles_and_names(workshop: Workshop) -> set[tuple[str, str]]:
    """Return the title and name of each tool in the panel of a run that calls a built-in tool and a
    connected tool."""
    workshop.play(asking(call("utility.now"), call(ADD, name="Ada")))
    run = workshop.work()
    html = "".join(line.html for line in render_lines(run.pk, run.events.order_by("seq")))
    html = re.sub('<strong class="chip"><bdi>([^<]*)</bdi></strong>', r"“\1”", html)
    return set(
        re.findall(
            r'class="call-title">([^<]*)</span>(?:\s*<span class="call-tool">([^<]*)</span>)?', html
        )
    )


@feature(
    "Connected sources",
    "Cards and panel lines call a connected tool by its technical name, and a card says why the tool could not start",
    "agents/web/cards/cards.py",
    whole_file=True,
)
def test_a_card_names_the_connected_tool_without_an_obstacle(
    workshop: Workshop, card: Approval
) -> None:
    html = shown(workshop, card)
    assert f'<dt>Tool</dt><dd><strong class="chip"><bdi>{ADD}</bdi></strong></dd>' in html
    assert obstacle(html) == ""


def test_panel_lines_show_the_name_of_a_connected_tool_and_the_title_of_a_built_in_tool(
    workshop: Workshop, source: Source
) -> None:
    assert titles_and_names(workshop) == {(f"“{ADD}”", ""), ("Current time", "")}


def test_a_card_says_that_its_tools_definition_has_changed(
    workshop: Workshop, api: Api, source: Source, card: Approval
) -> None:
    api.paths["/contacts"]["post"] = operation(
        "addContact", "Add a contact and greet it", name={"type": "string"}
    )
    read(source)
    assert obstacle(shown(workshop, card)).startswith("The tool has changed since this request")


def test_a_card_explains_why_a_quarantined_tool_would_not_start(
    workshop: Workshop, api: Api, source: Source, card: Approval
) -> None:
    offer(workshop, source, "crm.listContacts")
    # Lower the tool's level, so that the change below puts it in quarantine.
    source.tools.filter(tool=ADD).update(level=Level.READ.value)
    api.paths["/contacts"]["post"] = operation(
        "addContact", "Add a contact and greet it", name={"type": "string"}
    )
    read(source)
    assert "an admin must accept it" in obstacle(shown(workshop, card))


@pytest.mark.parametrize("how", ["off", "left", "deleted"])
def test_a_card_says_that_its_tool_was_removed(
    workshop: Workshop, source: Source, card: Approval, how: str
) -> None:
    if how == "left":
        leave(source, ADD)
    elif how == "off":
        Source.objects.filter(pk=source.pk).update(is_active=False)
    else:
        source.delete()
    bump_tools_version(workshop.organization.pk)
    words = {
        "off": 'an admin has switched off <bdi class="quoted">“crm”</bdi>',
        "left": f'The tool <bdi class="quoted">“{ADD}”</bdi> is no longer',
        "deleted": "is no longer available",
    }
    assert words[how] in obstacle(shown(workshop, card))
