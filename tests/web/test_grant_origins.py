"""In a standing grant's form, people choose the field of a result from which a value must come."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from agents.runs.models import Run
from agents.standing_grants.models import StandingGrant
from tests.features import feature
from tests.standing_grants.granting import answered, equals, is_waiting
from tests.standing_grants.shop_tools import Shop, comes_from, typed
from tests.web.granting import read_inputs, read_page
from tests.workshop import Workshop, call
from tests.workshop.fixtures import (  # noqa: F401
    _django_db_helper,
    commits_do_not_wait_for_the_disk,
    recorder,
    toolbox,
    workshop,
)
from tools.toolbox.conditions import Condition
from tools.toolbox.grant_sources import read_grant_condition, read_sources
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

CANCEL = "shop.cancel"
ORDER_ID = "shop.getOrder id"


@pytest.fixture
def shop(workshop: Workshop, toolbox: Toolbox) -> Shop:  # noqa: F811
    return Shop(workshop, toolbox)


@pytest.fixture
def client(shop: Shop) -> Client:
    made = Client()
    made.force_login(shop.workshop.approver.user)
    return made


def open_form(shop: Shop, client: Client) -> tuple[str, dict[str, Any]]:
    """Open the empty form for the tool; return its address and its values, of which the order must
    come from a result."""
    address = f"/grants/new/?tool={CANCEL}&employee={shop.workshop.employee.pk}"
    values: dict[str, Any] = read_inputs(read_page(client, address))
    return address, {**values, "rule.order": "comes_from"}


def post(client: Client, address: str, values: dict[str, Any], **more: Any) -> str:
    response = client.post(address, {**values, **more})
    return " ".join(response.content.decode().split())


def read_all(page: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """Return the form's values, with the chosen fields and the ticked boxes."""
    lookups = [key for key in ("shop.getOrder/id",) if f'name="lookup" value="{key}"' in page]
    return {**read_inputs(page), **chosen, "lookup": lookups}


@feature(
    "The gate",
    "People choose the field of a result from which a value must come, from the schema or recorded results",
    "agents/web/grants/origin_rows.py",
)
def test_the_grant_approves_a_value_that_comes_from_the_chosen_field(
    shop: Shop, client: Client
) -> None:
    address, values = open_form(shop, client)
    page = post(client, address, values, look="1")
    assert "choose a field of a result" in page
    assert f'<option value="{ORDER_ID}">id</option>' in page
    assert "other.getOrder" not in page
    chosen = {"from.order": [ORDER_ID]}
    page = post(client, address, {**read_inputs(page), **chosen}, look="1")
    assert '<legend title="id"><strong class="chip"><bdi>Id of shop.getOrder</bdi></strong>' in page
    assert "was typed by a person in the run" in page
    filled = read_all(page, chosen)
    assert filled["rule.shop.getOrder/id"] == "typed"
    assert client.post(address, filled).status_code == 302
    (made,) = StandingGrant.objects.all()
    (stored,) = made.conditions
    (source,) = read_sources(read_grant_condition(stored))
    (wanted,) = read_sources(comes_from("order", "shop.getOrder", "id", typed("id")))
    assert source.definition
    assert replace(source, definition="") == wanted
    listed = read_page(client, "/grants/")
    assert (
        "comes from <q>id of shop.getOrder (whose id was typed by a person in the run)</q>"
        in listed
    )
    check(shop)


def check(shop: Shop) -> None:
    """Check that the only grant approves an order that was looked up, but no other order."""
    read = shop.answer("shop.getOrder", "A-1", {"id": "A-1"})
    granted: Run = shop.work(read, call(CANCEL, order="A-1"), task="Cancel A-1")
    assert answered(granted)
    assert is_waiting(shop.work(read, call(CANCEL, order="A-2"), task="Cancel A-1"))


def test_a_field_that_was_not_offered_is_refused(shop: Shop, client: Client) -> None:
    address, values = open_form(shop, client)
    for wrong, says in (
        ("shop.getOrder lines.id", "have no field"),
        ("other.getOrder id", "no tool of the same connection"),
    ):
        page = post(client, address, values, **{"from.order": [wrong], "look": "1"})
        assert says in page
    assert not StandingGrant.objects.exists()


def test_a_recorded_field_is_offered(shop: Shop, client: Client) -> None:
    address, values = open_form(shop, client)
    assert "lines.sku" not in post(client, address, values, look="1")
    shop.work(shop.answer("shop.getOrder", "A-1", {"lines": [{"sku": "x"}]}))
    assert "lines.sku" in post(client, address, values, look="1")


def test_a_rule_for_each_entry_of_a_list_is_stored_and_can_allow_an_empty_list(
    shop: Shop, client: Client
) -> None:
    address, values = open_form(shop, client)
    values |= {"rule.order": "equals", "value.order": "A-1"}
    values |= {"rule.items": "each.host", "kind.items": "text", "value.items": "acme.example"}
    page = post(client, address, values, look="1", **{"empty.items": "on"})
    filled = {**read_inputs(page), "empty.items": "on"}
    assert client.post(address, filled).status_code == 302, page
    (made,) = StandingGrant.objects.all()
    stored = {each["param"]: each for each in made.conditions}
    assert stored["items"]["value"] == {"rule": "host", "value": "acme.example", "also": [[]]}


class TestRest:
    def terms(self, shop: Shop, *sources: dict[str, Any]) -> dict[str, Any]:
        value = {"sources": list(sources), "also": []}
        return {
            "tool": CANCEL,
            "employee_id": str(shop.workshop.employee.pk),
            "conditions": [{"param": "order", "rule": "comes_from", "value": value}],
            "max_uses": 10,
            "lifetime_s": 3600,
            "client_grant_id": "once",
        }

    def send(self, client: Client, terms: dict[str, Any]) -> Any:
        return client.post("/api/standing_grants", terms, content_type="application/json")

    def test_makes_one_grant_for_two_equal_requests(self, shop: Shop, client: Client) -> None:
        where = [{"param": "id", "rule": "typed", "value": {"also": []}}]
        terms = self.terms(shop, {"tool": "shop.getOrder", "path": "id", "where": where})
        assert self.send(client, terms).status_code == 201
        again = self.send(client, terms)
        assert again.status_code == 200, again.content
        check(shop)

    @pytest.mark.parametrize(
        ("source", "says"),
        [
            ({"tool": "shop.getOrder", "path": "lines.id"}, "have no field"),
            ({"tool": "shop.getOrder", "path": "id"}, "needs a condition"),
            ({"tool": "other.getOrder", "path": "id"}, "no tool of the same connection"),
            ({"tool": "shop.getOrder"}, "name the tool and the path"),
            ({"tool": "shop.getOrder", "path": "id", "like": "x"}, "has only a tool"),
        ],
    )
    def test_refuses_an_invalid_source(
        self, shop: Shop, client: Client, source: dict[str, Any], says: str
    ) -> None:
        response = self.send(client, self.terms(shop, source))
        assert response.status_code == 422
        assert says in response.json()["detail"].lower() or says in response.json()["detail"]

    def test_refuses_a_value_traced_back_through_more_than_four_results(
        self, shop: Shop, client: Client
    ) -> None:
        source: dict[str, Any] = {"tool": "shop.getOrder", "path": "id", "where": []}
        for _ in range(6):
            inner = {"sources": [source], "also": []}
            where = [{"param": "id", "rule": "comes_from", "value": inner}]
            source = {"tool": "shop.getOrder", "path": "id", "where": where}
        response = self.send(client, self.terms(shop, source))
        assert response.status_code == 422
        assert "traced back through at most 4 results" in response.json()["detail"]

    def test_does_not_allow_a_rule_about_the_origin_of_a_value_in_a_limit(self) -> None:
        with pytest.raises(ValueError, match="only a standing grant"):
            Condition.from_json(typed("order").as_json())
        assert Condition.from_json(equals("order", "A-1").as_json())
