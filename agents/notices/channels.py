"""Members' channels: add an address, confirm it with the code sent to it, remove it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator, validate_email
from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.module_loading import import_string

from agents.accounts import audit
from agents.accounts.models import AuditEntry, Membership, Organization, Role
from agents.accounts.notice_facts import NoticeFact, NoticeKind, clean_name, tell
from agents.deliveries.channels import get_channel
from agents.deliveries.channels.push import Subscription
from agents.deliveries.failures import DeliveryError
from agents.deliveries.models import MAX_PROBLEM, DeliveryStatus
from agents.notices.models import Channel, ChannelKind, Delivery, Notice
from agents.notices.outbox import send_soon
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound

MAX_CHANNELS = 5
MAX_WRONG_CODES = 5
MAX_GONE_RESPONSES = 3
MAX_ADDED_IN_AN_HOUR = 10
MAX_ADDRESS = 200
CODE_DIGITS = 8


def can_send_mail() -> bool:
    """Return True if the installation has a mail server."""
    return get_channel(ChannelKind.EMAIL.value).is_available()


def accepts_addresses() -> bool:
    """Return True if members may add e-mail addresses. Without a mail server, they may do so only
    in the demo, which shows notifications instead of sending them."""
    return can_send_mail() or settings.GADGET_SHOWS_MESSAGES


def can_reach_admins(organization: Organization, admins: QuerySet[Membership]) -> bool:
    """Return True if one of these admins has a confirmed address that can be used, or if the
    organization has an e-mail address for emergencies and the installation has a mail server."""
    usable = [
        kind
        for kind in ChannelKind
        if settings.GADGET_SHOWS_MESSAGES or get_channel(kind.value).is_available()
    ]
    channels = Channel.objects.filter(
        membership__in=admins, confirmed_at__isnull=False, kind__in=usable
    )
    return channels.exists() or bool(organization.break_glass_address and can_send_mail())


def add_email(member: Membership, address: str) -> Channel:
    """Add an e-mail address, and send it a code; the address is used once the code has been
    entered.

    Raises:
        Invalid: the text is not an e-mail address.
        Conflict: the address was added before, there are too many channels, or there is no mail
            server.
    """
    address = address.strip()
    if not accepts_addresses():
        raise Conflict(
            "This installation has no mail server. Ask an administrator to set MAIL_URL."
        )
    try:
        validate_email(address)
        MaxLengthValidator(MAX_ADDRESS)(address)
    except ValidationError:
        raise Invalid("email", "This is not an e-mail address.") from None
    try:
        with transaction.atomic():
            return _add(member, ChannelKind.EMAIL, address, mask_address(address))
    except IntegrityError:
        raise Conflict("You have added this address already.") from None


def confirm_channel(member: Membership, channel_id: int, code: str) -> Channel:
    """Confirm a channel with the code sent to it.

    Raises:
        NotFound: the member has no such channel.
        Invalid: the code is wrong.
        Conflict: the channel is confirmed already, or too many wrong codes were entered.
    """
    with transaction.atomic():
        channel = _lock_own(member, channel_id)
        if channel.confirmed_at is not None:
            raise Conflict("This address is already confirmed.")
        if channel.wrong_codes >= MAX_WRONG_CODES:
            raise Conflict("Too many wrong codes. Remove the address and add it again.")
        is_right = bool(channel.code) and secrets.compare_digest(
            "".join(code.split()).encode(), channel.code.encode()
        )
        if is_right:
            channel.confirmed_at, channel.code = timezone.now(), ""
            channel.save(update_fields=["confirmed_at", "code"])
            _record(member, "channel_confirmed", channel)
        else:
            Channel.objects.filter(pk=channel.pk).update(wrong_codes=F("wrong_codes") + 1)
    if not is_right:
        raise Invalid("code", "This is not the code that was sent. Check it and try again.")
    return channel


def remove_channel(member: Membership, channel_id: int) -> Channel:
    """Remove a channel with its deliveries.

    Raises:
        NotFound: the member has no such channel.
    """
    with transaction.atomic():
        channel = _lock_own(member, channel_id)
        _record(member, "channel_removed", channel)
        Channel.objects.filter(pk=channel.pk).delete()
    return channel


def add_known_email(member: Membership, address: str) -> Channel:
    """Add an e-mail address for the demo. The address needs no code, because nothing is sent
    there."""
    return Channel.objects.create(
        membership=member,
        kind=ChannelKind.EMAIL,
        address=address,
        label=mask_address(address),
        fingerprint=_find_fingerprint(address),
        confirmed_at=timezone.now(),
    )


def add_browser(member: Membership, subscription: Subscription, name: str) -> Channel:
    """Add a browser, and send it a code, which the browser's page enters automatically. If the
    member has already added this browser, it is replaced.

    Args:
        name: the browser in words, such as `Chrome on Linux`.

    Raises:
        Invalid: the subscription is not valid.
        Conflict: there are too many channels.
    """
    if (objection := subscription.find_objection()) is not None:
        raise Invalid("subscription", f"This browser cannot be added: {objection.why}.")
    address = subscription.dump()
    with transaction.atomic():
        Channel.objects.filter(membership=member, fingerprint=_find_fingerprint(address)).delete()
        channel = _add(member, ChannelKind.PUSH, address, clean_name(name)[:60] or "Browser")
        Channel.objects.filter(pk=channel.pk).update(host=subscription.host[:200])
        return channel


def add_chat(member: Membership, address: str, *, is_shared: bool = False) -> Channel:
    """Add an address of a chat service, and send it a code; the address is used once the code has
    been entered.

    Args:
        is_shared: True if the address is for the whole organization.

    Raises:
        Forbidden: only admins can add addresses for the whole organization.
        Invalid: the text is not an address of a supported service, or it names a server that is not
            allowed.
        Conflict: the address was added before, or there are too many channels.
    """
    address = address.strip()
    if is_shared and not member.may(Role.ADMIN):
        raise Forbidden("Only admins can add addresses for the whole organization.")
    # Imported on first use, because it takes 25 MB.
    find_service: Callable[[str], str] = import_string(
        "agents.deliveries.channels.chat.find_service"
    )
    service = find_service(address)
    try:
        with transaction.atomic():
            channel = _add(
                member,
                ChannelKind.CHAT,
                address,
                f"{service} for everyone" if is_shared else service,
            )
            Channel.objects.filter(pk=channel.pk).update(is_shared=is_shared, host=service[:200])
            return channel
    except IntegrityError:
        raise Conflict("You have added this address already.") from None


def ensure_break_glass_channel(organization: Organization) -> Channel | None:
    """Return the channel of the address that is notified of break-glass; create the channel if
    needed. Return None if there is no address.

    The channel belongs to the oldest member, because every channel needs one; no page shows it, and
    only a superuser changes the address.
    """
    address = organization.break_glass_address
    oldest = (
        Membership.objects.filter(organization=organization).order_by("pk").first()
        if address
        else None
    )
    if oldest is None:
        return None
    values = {
        "kind": ChannelKind.EMAIL,
        "address": address,
        "label": mask_address(address),
        "is_shared": True,
    }
    fingerprint = _find_fingerprint(f"break-glass {address}")
    defaults = values | {"confirmed_at": timezone.now()}
    return Channel.objects.get_or_create(
        membership=oldest, fingerprint=fingerprint, defaults=defaults
    )[0]


def note_reached(channel: Channel) -> None:
    """Record that a notification arrived by the channel."""
    failing = Channel.objects.filter(pk=channel.pk, failing_since__isnull=False)
    failing.update(failing_since=None, problem="", gone_answers=0)


def note_failed(channel: Channel, error: DeliveryError, pause: timedelta | None) -> None:
    """Record that a notification did not arrive by the channel. The channel's other notifications
    wait too, unless the channel is removed because its address seems to be gone.

    Args:
        pause: the pause before the next attempt; None if there is no next attempt.
    """
    same = Channel.objects.filter(pk=channel.pk)
    same.update(
        failing_since=Coalesce("failing_since", Now()),
        problem=error.problem[:MAX_PROBLEM],
        gone_answers=F("gone_answers") + 1 if error.is_gone else 0,
    )
    if error.is_gone and same.filter(gone_answers__gte=MAX_GONE_RESPONSES).exists():
        forget_channel(channel)
    elif pause is not None:
        to_send = Q(status=DeliveryStatus.WAITING) | Q(is_on_screen=True)
        waiting = Delivery.objects.filter(to_send, channel=channel, due_at__lt=Now() + pause)
        waiting.update(due_at=Now() + pause)


def forget_channel(channel: Channel) -> None:
    """Remove a channel whose address no longer exists, and notify its owner through the owner's
    other channels."""
    with transaction.atomic():
        whose = channel.membership
        tell(
            NoticeFact(
                NoticeKind.CHANNEL_LOST,
                whose.organization_id,
                detail=channel.label[:200],
                user_id=whose.user_id,
            )
        )
        entry = audit.NewEntry(
            "gadget", "channel_removed", f"channel:{channel.pk}", {"kind": channel.kind}
        )
        audit.append(channel.membership.organization_id, [entry])
        Channel.objects.filter(pk=channel.pk).delete()


def list_channels(member: Membership) -> list[Channel]:
    """List the member's channels, the oldest first."""
    return list(_select_own(member))


def _select_own(member: Membership) -> QuerySet[Channel]:
    """Select the channels that the member has added, and for an admin also those for everyone. The
    channel for break-glass is left out."""
    of_all = (
        Q(is_shared=True, membership__organization_id=member.organization_id)
        if member.may(Role.ADMIN)
        else Q()
    )
    own = Channel.objects.filter(Q(membership=member) | of_all if of_all else Q(membership=member))
    return own.exclude(kind=ChannelKind.EMAIL, is_shared=True)


def _add(member: Membership, kind: ChannelKind, address: str, label: str) -> Channel:
    """Add a channel and send it a code, inside the caller's transaction."""
    # Lock the member, so that two requests cannot add one channel too many.
    Membership.objects.select_for_update().get(pk=member.pk)
    if _select_own(member).filter(membership=member).count() >= MAX_CHANNELS:
        raise Conflict(f"You have {MAX_CHANNELS} channels. Remove one first.")
    if _count_recent(member) >= MAX_ADDED_IN_AN_HOUR:
        raise Conflict("You have added many addresses. Try again in an hour.")
    channel = Channel.objects.create(
        membership=member,
        kind=kind,
        address=address,
        label=label,
        fingerprint=_find_fingerprint(address),
        code=f"{secrets.randbelow(10**CODE_DIGITS):0{CODE_DIGITS}}",
    )
    _send_code(channel)
    _record(member, "channel_added", channel)
    return channel


def mask_address(address: str) -> str:
    """Return the address as others may see it, such as `a…@example.com`."""
    name, _, domain = address.rpartition("@")
    return f"{name[:1]}…@{domain}"


def _find_fingerprint(address: str) -> str:
    """Return a keyed hash of the address, so that the address can be recognized without being
    revealed."""
    return salted_hmac("notices.channel", address).hexdigest()


def _count_recent(member: Membership) -> int:
    """Count the addresses that the member has added in the last hour, including those that were
    removed again."""
    entries = AuditEntry.objects.filter(
        organization_id=member.organization_id, action="channel_added"
    )
    return entries.filter(actor=member.actor, at__gt=Now() - timedelta(hours=1)).count()


def _send_code(channel: Channel) -> None:
    notice = Notice.objects.create(
        organization_id=channel.membership.organization_id,
        key=f"{NoticeKind.CODE}:{channel.pk}",
        kind=NoticeKind.CODE,
        spread_at=Now(),
    )
    Delivery.objects.create(notice=notice, channel=channel, due_at=Now())
    send_soon()


def _lock_own(member: Membership, channel_id: int) -> Channel:
    own = _select_own(member).select_for_update(no_key=True).filter(pk=channel_id)
    channel = own.select_related("membership__user").first()
    if channel is None:
        raise NotFound(f"You have no channel {channel_id}.")
    return channel


def _record(member: Membership, action: str, channel: Channel) -> None:
    """Audit a change without the address, because an address may be private, and the audit is kept
    forever."""
    audit.record(member, action, f"channel:{channel.pk}", kind=channel.kind)
