"""Notices: members' preferences and channels, and the sent notifications."""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import available_timezones

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone

from agents.accounts.models import Membership, Role
from agents.accounts.notice_facts import NoticeKind
from agents.deliveries.channels.push import SILENT_PUSH_HOSTS, Subscription, get_public_key
from agents.deliveries.models import DeliveryStatus
from agents.notices.channels import (
    MAX_CHANNELS,
    accepts_addresses,
    add_browser,
    add_chat,
    add_email,
    can_send_mail,
    confirm_channel,
    list_channels,
    remove_channel,
)
from agents.notices.choices import CHOSEN_KINDS, ChosenTimes, load_choices, save_choices
from agents.notices.deliveries import describe_delivery, select_deliveries, send_notice_again
from agents.notices.following import follow_run, unfollow_run
from agents.notices.models import ADMIN_KINDS, RUN_KINDS, Delivery, NoticeChoices
from agents.notices.pace import Pace, find_default_pace
from agents.platform.refusals import Conflict, Forbidden, Invalid, Refusal
from agents.web.views.pages import member_view, read_newest, render_page

_ROLES = {
    **dict.fromkeys(RUN_KINDS, Role.VIEWER),
    **dict.fromkeys(
        (NoticeKind.QUESTION, NoticeKind.CARD_EXPIRING, NoticeKind.CARD_EXPIRED), Role.OPERATOR
    ),
    **dict.fromkeys((NoticeKind.SCHEDULE, NoticeKind.TRIGGER_REFUSED), Role.OPERATOR),
    **dict.fromkeys(ADMIN_KINDS, Role.ADMIN),
}
"""The lowest role that each of these kinds of notice can reach; all other kinds reach approvers."""
LATEST = 10
"""The number of latest notifications on the member's notices page."""
PACES = (
    (Pace.AT_ONCE, "Immediately"),
    (Pace.HOURLY, "Hourly"),
    (Pace.DAILY, "Daily"),
    (Pace.NEVER, "Never"),
)


@dataclass(frozen=True)
class NotificationLine:
    """A delivery as the page shows it; `path` is empty if it has no page."""

    delivery: Delivery
    sentence: str
    path: str

    @property
    def is_early(self) -> bool:
        """True if the delivery is not due yet."""
        return (
            self.delivery.status == DeliveryStatus.WAITING and self.delivery.due_at > timezone.now()
        )

    @classmethod
    def of(cls, delivery: Delivery, viewer: Membership) -> NotificationLine:
        """Describe the delivery for this viewer."""
        text = describe_delivery(delivery, viewer)
        return cls(delivery, text.sentence, text.path)


@member_view("GET")
def notices_page(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the member's channels, choices and latest notifications."""
    return _render(request, member)


@member_view("GET")
def notification_list(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the member's notifications, newest first; with `?all=1`, an admin sees the notifications
    of all members.

    `?before=` is the id of the last notification shown; `?failed=1` shows only failed
    notifications.
    """
    of_all = request.GET.get("all") == "1"
    if of_all and not member.may(Role.ADMIN):
        raise Forbidden("Only admins can see the notifications of other people.")
    rows = select_deliveries(member, of_all=of_all)
    if request.GET.get("failed") == "1":
        rows = rows.filter(status=DeliveryStatus.FAILED)
    page = read_newest(request, rows)
    context = {
        "lines": [NotificationLine.of(each, member) for each in page.rows],
        "next_before": page.next_before,
        "is_later_page": page.is_later,
        "of_all": of_all,
        "only_failed": request.GET.get("failed") == "1",
        "is_admin": member.may(Role.ADMIN),
        "sends_mail": can_send_mail(),
    }
    return render_page(request, member, "notices/notifications.html", context)


@member_view("POST", page="notices")
def choose(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Save the member's preferences for notices."""
    times = ChosenTimes(
        *(request.POST.get(name, "").strip() for name in ChosenTimes.__dataclass_fields__)
    )
    try:
        save_choices(
            member,
            {kind: request.POST[kind] for kind in CHOSEN_KINDS if kind in request.POST},
            times,
        )
    except Invalid as refusal:
        return _render(request, member, refusal)
    messages.success(request, "Your choices are saved.")
    return redirect("notices")


@member_view("POST", page="notices")
def add_channel(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Add an e-mail address, or a chat service's address, which is a secret and is not shown
    again."""
    try:
        if "chat" in request.POST:
            add_chat(member, request.POST["chat"], is_shared="shared" in request.POST)
        else:
            add_email(member, request.POST.get("email", ""))
    except (Invalid, Conflict) as refusal:
        return _render(request, member, refusal)
    messages.success(request, "A code is on its way to this address. Enter it below.")
    return redirect("notices")


@member_view("POST", page="notices")
def add_this_browser(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Add the browser that sends this form; a script has filled in the form."""
    subscription = Subscription(
        *(request.POST.get(name, "") for name in ("endpoint", "p256dh", "auth"))
    )
    try:
        add_browser(member, subscription, request.POST.get("name", ""))
    except (Invalid, Conflict) as refusal:
        return _render(request, member, refusal)
    return redirect("notices")


@member_view("POST", page="notices")
def confirm(request: HttpRequest, member: Membership, channel_id: int) -> HttpResponseBase:
    """Confirm an address with the code that was sent there."""
    try:
        channel = confirm_channel(member, channel_id, request.POST.get("code", ""))
    except (Invalid, Conflict) as refusal:
        return _render(request, member, refusal)
    messages.success(request, f"{channel.own_name} is confirmed.")
    return redirect("notices")


@member_view("POST", page="notices")
def remove(request: HttpRequest, member: Membership, channel_id: int) -> HttpResponseBase:
    """Remove an address."""
    channel = remove_channel(member, channel_id)
    messages.success(request, f"{channel.own_name} is removed.")
    return redirect("notices")


@member_view("POST", page="notices")
def repeat(request: HttpRequest, member: Membership, delivery_id: int) -> HttpResponseBase:
    """Send a failed notification again."""
    send_notice_again(member, delivery_id)
    messages.success(request, "The notification is being sent again.")
    return redirect("notices")


@member_view("POST", page="run")
def follow(request: HttpRequest, member: Membership, run_id: int) -> HttpResponseBase:
    """Follow the run, so that the member is notified when it ends; with `stop`, unfollow it."""
    if "stop" in request.POST:
        unfollow_run(member, run_id)
    else:
        follow_run(member, run_id)
        if not any(channel.confirmed_at for channel in list_channels(member)):
            messages.info(
                request, "Add an e-mail address under “Notices”, so that we can notify you."
            )
    return redirect("run", run_id)


def _render(
    request: HttpRequest, member: Membership, refusal: Refusal | None = None
) -> HttpResponse:
    choices = load_choices(member)
    typed = request.POST if refusal is not None else {}
    context = {
        "channels": list_channels(member),
        "accepts_addresses": accepts_addresses(),
        "sends_mail": can_send_mail(),
        "max_channels": MAX_CHANNELS,
        "push_key": get_public_key(),
        "silent_push_hosts": SILENT_PUSH_HOSTS,
        "code": request.GET.get("code", ""),
        "kinds": [
            (kind.value, kind.label, _read_pace(choices, kind)) for kind in _list_kinds(member)
        ],
        "paces": PACES,
        "choices": choices,
        "zones": sorted(available_timezones()),
        "lines": [NotificationLine.of(each, member) for each in _latest(member)],
        "of_all": False,
        "is_admin": member.may(Role.ADMIN),
        "typed": typed,
        "refusal": refusal,
        "invalid_field": refusal.extra.get("field", "") if refusal else "",
    }
    return render_page(request, member, "notices/notices.html", context)


def _list_kinds(member: Membership) -> list[NoticeKind]:
    """List the kinds of notices that can reach a member with this role."""
    return [kind for kind in CHOSEN_KINDS if member.may(_ROLES.get(kind, Role.APPROVER))]


def _read_pace(choices: NoticeChoices, kind: NoticeKind) -> str:
    return str(choices.paces.get(kind.value, find_default_pace(kind.value)))


def _latest(member: Membership) -> QuerySet[Delivery]:
    return select_deliveries(member, of_all=False)[:LATEST]
