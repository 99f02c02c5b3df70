"""Add, edit, switch and remove webhooks for admins, and rotate their secrets."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Now

from agents.accounts import audit
from agents.accounts.models import Membership, Role
from agents.deliveries.changes import delete_deliveries, end_deliveries
from agents.platform.refusals import Conflict, Invalid, NotFound
from agents.webhooks.models import (
    Webhook,
    WebhookDelivery,
    WebhookDeliveryStatus,
    WebhookKind,
    WebhookSecret,
)
from tools.contract import ToolError
from tools.network import get_host, read_url
from tools.network.urls import parse_ip

MAX_WEBHOOKS = 20
MAX_ADDRESS = 500
MAX_SECRETS = 4
OVERLAP = timedelta(days=1)
"""The time for which an old secret stays valid alongside the new secret."""
KEPT = timedelta(days=30)
"""The time for which ended deliveries are kept."""


@dataclass(frozen=True)
class WebhookTerms:
    """The terms of a webhook, entered by an admin; see `Webhook`."""

    name: str
    address: str
    kinds: Sequence[str]
    sends_values: bool = False


def list_webhooks(member: Membership) -> QuerySet[Webhook]:
    """Return the organization's webhooks, newest first.

    Raises:
        Forbidden
    """
    member.require(Role.ADMIN, "see webhooks")
    return Webhook.objects.filter(organization_id=member.organization_id)


def find_webhook(member: Membership, webhook_id: int) -> Webhook:
    """Find a webhook of the member's organization.

    Raises:
        Forbidden, NotFound
    """
    return _get(list_webhooks(member), webhook_id)


def make_webhook(member: Membership, terms: WebhookTerms) -> tuple[Webhook, str]:
    """Add a webhook; return it with its secret, which is not shown again.

    Raises:
        Forbidden, Invalid
        Conflict: the organization has too many webhooks.
    """
    own = list_webhooks(member)
    webhook = Webhook(organization_id=member.organization_id, created_by=member.user)
    _write(webhook, terms)
    with transaction.atomic():
        if own.count() >= MAX_WEBHOOKS:
            raise Conflict(f"limit reached: {MAX_WEBHOOKS} webhooks; remove one first")
        webhook.save(force_insert=True)
        secret = _add_secret(webhook)
        record_change(
            member,
            "webhook_created",
            webhook,
            kinds=list(webhook.kinds),
            sends_values=webhook.sends_values,
        )
    return webhook, secret


def edit_webhook(member: Membership, webhook_id: int, terms: WebhookTerms) -> Webhook:
    """Change the webhook. If its address changes, waiting deliveries go to the new address, and its
    earlier failures no longer count.

    Raises:
        Forbidden, NotFound, Invalid
    """
    with transaction.atomic():
        webhook = lock_webhook(member, webhook_id)
        earlier = webhook.address
        _write(webhook, terms)
        has_moved = webhook.address != earlier
        if has_moved:
            _forget_failures(webhook)
        webhook.save()
        facts = {"kinds": list(webhook.kinds), "sends_values": webhook.sends_values}
        record_change(member, "webhook_changed", webhook, **facts, has_new_address=has_moved)
    return webhook


def switch_webhook(member: Membership, webhook_id: int, *, is_active: bool) -> Webhook:
    """Switch a webhook off, or on again as if it had never failed.

    Raises:
        Forbidden, NotFound
    """
    with transaction.atomic():
        webhook = lock_webhook(member, webhook_id)
        if webhook.is_active == is_active:
            return webhook
        webhook.is_active, webhook.off_reason = is_active, ""
        _forget_failures(webhook)
        webhook.save()
        # Also when switched on: the reader may have added deliveries after the webhook was switched
        # off.
        fail_waiting(webhook, "the webhook was switched off")
        record_change(
            member, "webhook_switched_on" if is_active else "webhook_switched_off", webhook
        )
    return webhook


def rotate_secret(member: Membership, webhook_id: int) -> tuple[Webhook, str]:
    """Give a webhook a new secret, and return both. The old secret stays valid for a day.

    Raises:
        Forbidden, NotFound
        Conflict: too many secrets are valid.
    """
    with transaction.atomic():
        webhook = lock_webhook(member, webhook_id)
        valid = webhook.secrets.filter(Q(valid_until=None) | Q(valid_until__gt=Now()))
        if valid.count() >= MAX_SECRETS:
            raise Conflict(
                f"{MAX_SECRETS} secrets are valid at the moment; wait until one of them has expired"
            )
        webhook.secrets.filter(valid_until__lte=Now()).delete()
        webhook.secrets.filter(valid_until=None).update(valid_until=Now() + OVERLAP)
        secret = _add_secret(webhook)
        record_change(member, "webhook_secret_changed", webhook)
    return webhook, secret


def remove_webhook(member: Membership, webhook_id: int) -> None:
    """Remove a webhook; its deliveries are deleted later in short transactions, because there may
    be very many.

    Raises:
        Forbidden, NotFound
    """
    with transaction.atomic():
        webhook = lock_webhook(member, webhook_id)
        record_change(member, "webhook_removed", webhook)
        webhook.delete()


def forget_old_deliveries(at_once: int = 1_000) -> int:
    """Delete deliveries that ended more than 30 days ago, and deliveries of removed webhooks;
    return the number of deleted deliveries.

    Fail waiting deliveries of webhooks that are switched off. Work in short transactions, and leave
    the remaining deliveries for later if there are many.
    """
    rows = WebhookDelivery.objects.all()
    late = rows.filter(webhook__is_active=False)
    end_deliveries(late, WebhookDeliveryStatus.FAILED, "the webhook was switched off")
    of_none = rows.filter(~Exists(Webhook.objects.filter(pk=OuterRef("webhook_id"))))
    old = (rows.filter(ended_at__lt=Now() - KEPT), of_none)
    return sum(delete_deliveries(each, at_once) for each in old)


def switch_all_off(reason: str) -> None:
    """Switch all webhooks off, and fail all waiting deliveries.

    Used after a restore, when nobody knows what was sent since the backup or whether the
    installation is a copy.
    """
    end_deliveries(WebhookDelivery.objects.all(), WebhookDeliveryStatus.FAILED, reason)
    Webhook.objects.filter(is_active=True).update(is_active=False, off_reason=reason[:300])


def fail_waiting(webhook: Webhook, reason: str) -> None:
    """Fail all waiting deliveries of the webhook; people can send them again. A delivery that has
    failed before keeps the reason for that failure."""
    waiting = WebhookDelivery.objects.filter(webhook=webhook, status=WebhookDeliveryStatus.WAITING)
    problem = Case(When(problem="", then=Value(reason[:300])), default=F("problem"))
    waiting.update(status=WebhookDeliveryStatus.FAILED, ended_at=Now(), problem=problem)


def _forget_failures(webhook: Webhook) -> None:
    webhook.failing_since, webhook.failures, webhook.problem, webhook.rests_until = (
        None,
        0,
        "",
        None,
    )


def _get(rows: QuerySet[Webhook], webhook_id: int) -> Webhook:
    webhook = rows.filter(pk=webhook_id).first()
    if webhook is None:
        raise NotFound(f"there is no webhook {webhook_id}")
    return webhook


def lock_webhook(member: Membership, webhook_id: int) -> Webhook:
    """Lock a webhook of the member's organization.

    Raises:
        Forbidden, NotFound
    """
    return _get(list_webhooks(member).select_for_update(no_key=True), webhook_id)


def _write(webhook: Webhook, terms: WebhookTerms) -> None:
    """Check the terms and set them on the webhook, which the caller saves.

    Raises:
        Invalid
    """
    name = " ".join(terms.name.split())
    if not name or len(name) > 80 or not name.isprintable():
        raise Invalid("name", "name must have 1 to 80 visible characters")
    unknown = set(terms.kinds) - set(WebhookKind.values)
    if unknown or not terms.kinds:
        raise Invalid("kinds", "choose at least one kind of event")
    webhook.name, webhook.kinds = name, [kind for kind in WebhookKind.values if kind in terms.kinds]
    webhook.address, webhook.sends_values = (
        _clean_address(terms.address.strip()),
        terms.sends_values,
    )


def _clean_address(address: str) -> str:
    """Return the address if it uses https and is public, or if the installation allows its private
    host.

    Raises:
        Invalid
    """
    try:
        url = read_url(address)
    except ToolError as error:
        raise Invalid("address", error.message) from error
    if len(address) > MAX_ADDRESS:
        raise Invalid("address", f"address must have at most {MAX_ADDRESS} characters")
    host = get_host(url)
    if url.scheme != "https" and not _is_allowed(host):
        raise Invalid(
            "address",
            "the address must begin with https://, unless ALLOWED_PRIVATE_HOSTS names its host",
        )
    number = parse_ip("127.0.0.1" if host == "localhost" else host)
    if number is not None and not number.is_global and not _is_allowed(host):
        raise Invalid("address", "the address is private; ALLOWED_PRIVATE_HOSTS has to name it")
    return address


def _is_allowed(host: str) -> bool:
    """Return True if ALLOWED_PRIVATE_HOSTS names the host, or covers its address."""
    hosts = settings.ALLOWED_PRIVATE_HOSTS
    address = parse_ip("127.0.0.1" if host == "localhost" else host)
    return (
        hosts.may_cover(host, address)
        if address
        else any(entry.name == host for entry in hosts.entries)
    )


def _add_secret(webhook: Webhook) -> str:
    secret = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
    WebhookSecret.objects.create(webhook=webhook, secret=secret)
    return secret


def record_change(member: Membership, action: str, webhook: Webhook, **details: object) -> None:
    """Record an action of the member on the webhook in the audit."""
    audit.record(member, action, f"webhook:{webhook.pk}", name=webhook.name, **details)
