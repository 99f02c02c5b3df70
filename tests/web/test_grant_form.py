"""The form for a standing grant shows the most important params first, named as in the schema, and
folds the values that are unchanged from the card."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from tests.features import feature
from tests.standing_grants.granting import allow
from tests.standing_grants.shop_tools import TEXT, SourceTool, describe_object
from tests.web.granting import read_inputs, read_page, waiting_card
from tests.workshop import Workshop, asking, call
from tests.workshop.fixtures import (  # noqa: F401
    _django_db_helper,
    commits_do_not_wait_for_the_disk,
    recorder,
    toolbox,
    workshop,
)
from tests.world import World
from tools.contract import Level
from tools.toolbox.toolbox import Toolbox

MANY = 37
ORDER = "shop.order"


def open_card(workshop: Workshop, toolbox: Toolbox) -> tuple[Client, str]:  # noqa: F811
    """Ask for approval of a call with forty params; return the address of its form."""
    params: dict[str, Any] = {f"option_{number}": TEXT for number in range(MANY)}
    params |= {"recipient": {**TEXT, "title": "Who gets it"}, "note": TEXT}
    lines = {"type": "array", "items": describe_object(sku={**TEXT, "title": "Article"})}
    schema = describe_object(**params, lines=lines)
    allow(workshop, toolbox, SourceTool(ORDER, Level.WRITE, schema, lambda _: {}))
    values = dict.fromkeys(params, "same") | {"recipient": "ann@acme.example"}
    workshop.play(asking(call(ORDER, **values, lines=[{"sku": "A-1"}])))
    (card,) = workshop.cards(workshop.work("Order it"))
    client = Client()
    client.force_login(workshop.approver.user)
    return client, f"/grants/new/?card={card.pk}"


def split_form(page: str) -> tuple[str, str]:
    """Return what the form shows and what it folds."""
    form = page.partition('class="surface grant-form"')[2]
    folded = re.findall(r'<details class="more-rows".*?</details>', form)
    return re.sub(r'<details class="more-rows".*?</details>', "", form), " ".join(folded)


@pytest.mark.django_db(transaction=True)
class TestAFormOfManyParams:
    @feature(
        "Pages",
        "The form for a standing grant folds the values that stay as on the card",
        "agents/web/grants/form_rows.py",
    )
    def test_folds_params_unchanged_from_the_card_but_shows_those_that_name_something(
        self,
        workshop: Workshop,  # noqa: F811
        toolbox: Toolbox,  # noqa: F811
    ) -> None:
        client, address = open_card(workshop, toolbox)
        page = read_page(client, address)
        shown, folded = split_form(page)
        assert 'name="path" value="recipient"' in shown
        assert 'name="path" value="option_1"' not in shown
        assert 'name="path" value="option_1"' in folded
        assert f"{MANY + 2} values stay as on this card · open" in folded
        assert f"{MANY + 3} values stay as on this card" in shown
        assert client.post(address, read_inputs(page)).status_code == 302

    def test_shows_a_param_whose_condition_was_widened(
        self,
        workshop: Workshop,  # noqa: F811
        toolbox: Toolbox,  # noqa: F811
    ) -> None:
        client, address = open_card(workshop, toolbox)
        widened = {**read_inputs(read_page(client, address)), "rule.note": "any", "look": "1"}
        response = client.post(address, widened)
        shown, folded = split_form(" ".join(response.content.decode().split()))
        assert 'name="path" value="note"' in shown
        assert "<b>Note</b> may have any value" in shown
        assert f"{MANY + 1} values stay as on this card · open" in folded

    def test_does_not_say_that_a_changed_value_is_the_same_as_on_the_card(
        self,
        workshop: Workshop,  # noqa: F811
        toolbox: Toolbox,  # noqa: F811
    ) -> None:
        client, address = open_card(workshop, toolbox)
        values = {**read_inputs(read_page(client, address)), "look": "1"}
        for value, words in (("same", "as on this card"), ("other", "the same")):
            response = client.post(address, {**values, "value.option_1": value})
            _, folded = split_form(" ".join(response.content.decode().split()))
            assert f"{MANY + 2} values stay {words} · open" in folded

    def test_unfolds_its_params_when_it_is_refused(
        self,
        workshop: Workshop,  # noqa: F811
        toolbox: Toolbox,  # noqa: F811
    ) -> None:
        client, address = open_card(workshop, toolbox)
        values = {**read_inputs(read_page(client, address)), "rule.option_1": "magic"}
        page = client.post(address, values).content.decode()
        assert '<details class="more-rows" open>' in page

    def test_shows_the_schemas_titles_of_params_with_their_names_beside_the_titles(
        self,
        workshop: Workshop,  # noqa: F811
        toolbox: Toolbox,  # noqa: F811
    ) -> None:
        client, address = open_card(workshop, toolbox)
        page = read_page(client, address)
        assert (
            '<legend title="recipient"><strong class="chip"><bdi>Who gets it</bdi></strong> <code>recipient</code>'
            in page
        )
        assert (
            '<legend title="lines.sku"><strong class="chip"><bdi>Lines · Article</bdi></strong> <code>lines.sku</code>'
            in page
        )
        assert (
            '<legend title="option_1"><strong class="chip"><bdi>Option 1</bdi></strong> </legend>'
            in page
        )


@pytest.mark.django_db
def test_the_name_of_a_record_stands_below_its_id(world: World) -> None:
    card, record = waiting_card(world), world.records[0]
    page = read_page(world.client("approver"), f"/grants/new/?card={card.pk}")
    assert re.search(rf"> {record.pk}</textarea> <span class=.small.>{record.name}</span>", page)
