"""The pages about webhooks: a secret is shown once, and each delivery shows the receiver's
response."""

from __future__ import annotations

import re

import pytest

from agents.webhooks.models import Webhook, WebhookDelivery, WebhookKind, WebhookSecret
from tests.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.once]

FORM = {
    "name": "Other system",
    "address": "https://example.com/x",
    "kinds": ["run.started", "run.failed"],
}
HOSTILE = '"><script>alert(1)</script>'


def create(world: World) -> Webhook:
    assert world.client("admin").post("/webhooks/", FORM).status_code == 302
    return Webhook.objects.latest("pk")


def read(world: World, path: str) -> str:
    return " ".join(
        re.sub("<[^>]+>", " ", world.client("admin").get(path).content.decode()).split()
    )


def test_a_new_secret_is_shown_once(world: World) -> None:
    client = world.client("admin")
    page = client.post("/webhooks/", FORM, follow=True).content.decode()
    secret = WebhookSecret.objects.get().secret
    assert secret in page
    for path in ("/webhooks/", f"/webhooks/{Webhook.objects.get().pk}/"):
        assert secret not in client.get(path).content.decode()


def test_the_first_secret_is_shown_alone_and_a_rotated_secret_with_its_predecessor(
    world: World,
) -> None:
    client = world.client("admin")
    assert "earlier secret" not in client.post("/webhooks/", FORM, follow=True).content.decode()
    webhook = Webhook.objects.get()
    assert (
        "The earlier secret stays valid for a day."
        in client.post(f"/webhooks/{webhook.pk}/secret/", follow=True).content.decode()
    )
    assert "earlier secret" not in client.get("/webhooks/").content.decode()


def test_a_new_secret_is_shown_with_the_webhook_for_which_it_was_created(world: World) -> None:
    client = world.client("admin")
    client.post("/webhooks/", {**FORM, "name": "First"})
    world.client("admin").post("/webhooks/", {**FORM, "name": "Second"})
    assert ">First</bdi></strong></h2>" in client.get("/webhooks/").content.decode()


def test_the_form_starts_with_every_kind_and_keeps_typed_values(world: World) -> None:
    client = world.client("admin")
    page = client.get("/webhooks/").content.decode()
    assert page.count("checked") == len(WebhookKind)
    page = client.post("/webhooks/", {**FORM, "address": "", "sends_values": "1"}).content.decode()
    assert 'value="Other system"' in page
    assert page.count("checked") == len(FORM["kinds"]) + 1
    webhook = create(world)
    page = client.get(f"/webhooks/{webhook.pk}/").content.decode()
    assert 'value="Other system"' in page
    assert page.count("checked") == len(FORM["kinds"])


def test_a_webhook_can_be_switched_off_and_on(world: World) -> None:
    webhook, client = create(world), world.client("admin")
    for form, state in (({}, "off"), ({"on": "1"}, "on"), ({"on": "0"}, "off")):
        page = client.post(f"/webhooks/{webhook.pk}/switch/", form, follow=True).content.decode()
        webhook.refresh_from_db()
        assert webhook.is_active is (state == "on")
        assert f"“Other system” is switched {state}." in page


def test_only_deliveries_of_the_webhook_are_listed(world: World) -> None:
    webhook, other = create(world), create(world)
    WebhookDelivery.objects.create(webhook=other, kind="run.started", run_id=1, seq=77)
    assert "event 77" not in read(world, f"/webhooks/{webhook.pk}/")
    assert "event 77" in read(world, f"/webhooks/{other.pk}/")


def test_a_last_page_that_is_exactly_full_does_not_link_to_more_deliveries(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.web.views.pages.PAGE_SIZE", 1)
    webhook = create(world)
    WebhookDelivery.objects.create(webhook=webhook, kind="run.started", run_id=1, seq=1)
    assert "?before=" not in world.client("admin").get(f"/webhooks/{webhook.pk}/").content.decode()


def test_the_list_names_the_host_but_not_the_rest_of_the_address(world: World) -> None:
    form = {**FORM, "address": "https://hooks.example.com:8443/services/s3cret"}
    assert world.client("admin").post("/webhooks/", form).status_code == 302
    page = world.client("admin").get("/webhooks/").content.decode()
    assert "hooks.example.com:8443, 2 kinds of events" in read(world, "/webhooks/")
    assert "s3cret" not in page


@pytest.mark.parametrize("address", ["", "ftp://example.com/x"])
def test_the_host_of_an_undecryptable_or_invalid_address_is_empty(address: str) -> None:
    assert Webhook(address=address).host == ""


def test_a_rotated_secret_is_shown_once(world: World) -> None:
    webhook, client = create(world), world.client("admin")
    page = client.post(f"/webhooks/{webhook.pk}/secret/", follow=True).content.decode()
    newest = WebhookSecret.objects.get(valid_until=None).secret
    assert newest in page
    assert newest not in client.get("/webhooks/").content.decode()


@pytest.mark.parametrize("wrong", [{"name": ""}, {"address": "http://example.com/"}, {"kinds": []}])
def test_invalid_values_are_refused_with_an_error_text(world: World, wrong: dict[str, str]) -> None:
    response = world.client("admin").post("/webhooks/", {**FORM, **wrong})
    assert response.status_code == 422
    assert 'role="alert"' in response.content.decode()
    assert 'aria-invalid="true"' in response.content.decode()
    webhook = create(world)
    assert (
        world.client("admin").post(f"/webhooks/{webhook.pk}/", {**FORM, **wrong}).status_code == 422
    )


def test_the_form_saves_every_field(world: World) -> None:
    webhook = create(world)
    assert (webhook.kinds, webhook.sends_values) == (FORM["kinds"], False)
    changed = {
        "name": "Warehouse",
        "address": "https://example.org/",
        "kinds": ["ask.answered"],
        "sends_values": "1",
    }
    world.client("admin").post(f"/webhooks/{webhook.pk}/", changed)
    webhook.refresh_from_db()
    assert (webhook.name, webhook.address, webhook.kinds, webhook.sends_values) == (
        "Warehouse",
        "https://example.org/",
        ["ask.answered"],
        True,
    )


def test_the_last_deliveries_show_the_receivers_response(world: World) -> None:
    webhook = create(world)
    columns = {
        "webhook": webhook,
        "kind": "run.started",
        "run_id": world.run().pk,
        "ended_at": webhook.created_at,
    }
    WebhookDelivery.objects.create(
        **columns, seq=1, status="sent", tries=1, answer_status=204, duration_ms=17
    )
    WebhookDelivery.objects.create(
        **columns, seq=2, status="failed", tries=9, problem="the receiver responded with 500"
    )
    page = read(world, f"/webhooks/{webhook.pk}/")
    assert "event 1, 1 try, response 204 in 17 ms" in page
    assert "event 2, 9 tries" in page
    assert "The receiver responded with 500." in page


def test_a_delivery_can_be_sent_again_by_a_button(world: World) -> None:
    webhook = create(world)
    columns = {
        "kind": "run.started",
        "run_id": 1,
        "seq": 1,
        "status": "failed",
        "ended_at": webhook.created_at,
    }
    delivery = WebhookDelivery.objects.create(webhook=webhook, **columns)
    response = world.client("admin").post(f"/webhooks/deliveries/{delivery.pk}/again/")
    assert response["Location"] == f"/webhooks/{webhook.pk}/"
    assert WebhookDelivery.objects.get().status == "waiting"


def test_the_page_says_why_gadget_switched_a_webhook_off(world: World) -> None:
    webhook = create(world)
    Webhook.objects.update(
        is_active=False, off_reason="the receiver responded with 410: it is gone"
    )
    assert "This webhook is switched off. The receiver responded with 410: it is gone." in read(
        world, f"/webhooks/{webhook.pk}/"
    )
    world.client("admin").post(f"/webhooks/{webhook.pk}/switch/", {"on": "1"})
    assert "switched off." not in read(world, f"/webhooks/{webhook.pk}/")


def test_older_deliveries_are_on_further_pages(world: World) -> None:
    webhook = create(world)
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(webhook=webhook, kind="run.started", run_id=1, seq=number)
        for number in range(1, 61)
    )
    first = world.client("admin").get(f"/webhooks/{webhook.pk}/").content.decode()
    (before,) = re.findall(r"\?before=(\d+)", first)
    second = world.client("admin").get(f"/webhooks/{webhook.pk}/?before={before}").content.decode()
    assert (first.count("event "), second.count("event ")) == (50, 10)


@pytest.mark.parametrize("field", ["name", "address", "kinds"])
def test_hostile_input_stays_text_in_the_form(world: World, field: str) -> None:
    page = world.client("admin").post("/webhooks/", {**FORM, "kinds": [], field: HOSTILE})
    assert page.status_code == 422
    assert "<script>alert" not in page.content.decode()


def test_a_delivery_without_a_run_does_not_name_a_run(world: World) -> None:
    webhook = create(world)
    WebhookDelivery.objects.create(webhook=webhook, kind="work.stopped", seq=7)
    page = read(world, f"/webhooks/{webhook.pk}/")
    assert "work.stopped event 7" in page
    assert "run None" not in page
