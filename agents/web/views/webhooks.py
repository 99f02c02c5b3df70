"""The pages of webhooks: admins add and change them, and see their last deliveries."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from agents.accounts.models import Membership
from agents.deliveries.changes import send_again
from agents.platform.refusals import Conflict, Invalid, Refusal
from agents.web.text.safe_text import quote_outside
from agents.web.views import one_time_reports
from agents.web.views.pages import member_view, read_newest, render_page
from agents.webhooks import changes
from agents.webhooks.models import Webhook, WebhookKind
from agents.webhooks.sending import KIND

_NEW_SECRET = "made_webhook_secret"  # noqa: S105 - the session key under which a new secret is stored until it is shown


@member_view("GET", "POST")
def webhook_list(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the webhooks, a new secret once, and the form for a new webhook; POST adds a webhook."""
    if request.method != "POST":
        return _render_list(request, member)
    try:
        webhook, secret = changes.make_webhook(member, _read_terms(request))
    except (Invalid, Conflict) as refusal:
        return _render_list(request, member, refusal)
    one_time_reports.store_report(
        request, member, _NEW_SECRET, {"webhook": webhook.pk, "secret": secret}
    )
    return redirect("webhooks")


@member_view("GET", "POST")
def webhook_page(request: HttpRequest, member: Membership, webhook_id: int) -> HttpResponseBase:
    """Show a webhook's last deliveries and its form; POST saves the form."""
    webhook = changes.find_webhook(member, webhook_id)
    if request.method != "POST":
        return _render_one(request, member, webhook)
    try:
        changes.edit_webhook(member, webhook_id, _read_terms(request))
    except Invalid as refusal:
        return _render_one(request, member, webhook, refusal)
    messages.success(request, "The webhook was saved.")
    return redirect("webhook", webhook_id)


@member_view("POST", page="webhook")
def switch(request: HttpRequest, member: Membership, webhook_id: int) -> HttpResponseBase:
    """Switch a webhook on if the form has `on=1`, otherwise off."""
    webhook = changes.switch_webhook(member, webhook_id, is_active=request.POST.get("on") == "1")
    messages.success(
        request,
        f"{quote_outside(webhook.name)} is switched {'on' if webhook.is_active else 'off'}.",
    )
    return redirect("webhook", webhook_id)


@member_view("POST", page="webhook")
def rotate(request: HttpRequest, member: Membership, webhook_id: int) -> HttpResponseBase:
    """Give a webhook a new secret; the next page shows it once."""
    webhook, secret = changes.rotate_secret(member, webhook_id)
    one_time_reports.store_report(
        request, member, _NEW_SECRET, {"webhook": webhook.pk, "secret": secret}
    )
    return redirect("webhooks")


@member_view("POST", page="webhook")
def remove(request: HttpRequest, member: Membership, webhook_id: int) -> HttpResponseBase:
    """Remove a webhook with its deliveries."""
    changes.remove_webhook(member, webhook_id)
    messages.success(request, "The webhook was removed.")
    return redirect("webhooks")


@member_view("POST", page="webhooks")
def repeat(request: HttpRequest, member: Membership, webhook_delivery_id: int) -> HttpResponseBase:
    """Send a delivery again, with the same id."""
    delivery = send_again(member, KIND, webhook_delivery_id)
    messages.success(request, "The delivery will be sent again.")
    return redirect("webhook", delivery.webhook_id)


def _read_terms(request: HttpRequest) -> changes.WebhookTerms:
    return changes.WebhookTerms(
        name=request.POST.get("name", ""),
        address=request.POST.get("address", ""),
        kinds=request.POST.getlist("kinds"),
        sends_values=request.POST.get("sends_values") == "1",
    )


def _render_list(
    request: HttpRequest, member: Membership, refusal: Refusal | None = None
) -> HttpResponse:
    webhooks = changes.list_webhooks(member)
    report = one_time_reports.take_report(request, member, _NEW_SECRET)
    shown = webhooks.filter(pk=report.get("webhook", 0)).first()
    context = {
        "webhooks": webhooks,
        "new_webhook": shown,
        "secret": report.get("secret", "") if shown else "",
        "has_earlier_secret": shown is not None and shown.secrets.count() > 1,
        **_build_form(request, None, refusal),
    }
    return render_page(request, member, "webhooks/list.html", context)


def _render_one(
    request: HttpRequest, member: Membership, webhook: Webhook, refusal: Refusal | None = None
) -> HttpResponse:
    page = read_newest(request, webhook.deliveries.all())
    context = {
        "webhook": webhook,
        "deliveries": page.rows,
        "older": page.next_before,
        **_build_form(request, webhook, refusal),
    }
    return render_page(request, member, "webhooks/webhook.html", context)


def _build_form(
    request: HttpRequest, webhook: Webhook | None, refusal: Refusal | None
) -> dict[str, Any]:
    if request.method == "POST":
        terms = _read_terms(request)
    elif webhook is not None:
        terms = changes.WebhookTerms(
            webhook.name, webhook.address, webhook.kinds, webhook.sends_values
        )
    else:
        terms = changes.WebhookTerms("", "", WebhookKind.values)
    return {
        "terms": terms,
        "kinds": WebhookKind.choices,
        "refusal": refusal,
        "invalid_field": refusal.extra.get("field", "") if refusal else "",
    }
