"""Notifications by chat services, such as Slack or ntfy. The library `apprise` knows the addresses
and the requests of these services.

Apprise sends with `requests`, which would bypass our network rules. So all sessions of `requests`
get our adapter, which hands requests to the guarded client. While no notification is being sent,
requests are refused.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from io import BytesIO
from ipaddress import ip_address
from typing import Any

import requests
from apprise import Apprise, AppriseAsset, NotifyFormat, PersistentStoreMode
from apprise.plugins import NotifyBase
from django.conf import settings
from requests import PreparedRequest, Response
from requests.adapters import BaseAdapter
from typing_extensions import override

from agents.deliveries.content import Notification
from agents.deliveries.failures import DeliveryError
from agents.platform.database_connections import release_connection
from agents.platform.refusals import Invalid
from tools.contract import ErrorCode, NetworkAccess, PrivateHosts, ToolError
from tools.network import ClientResponse, GuardedClient, NetworkLimits, get_host, read_url

MEMORY = PersistentStoreMode.MEMORY
OWN_HOST, TEAMS = "", "Microsoft Teams"
SERVICES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "discord": ("Discord", ("discord.com",)),
    "gchat": ("Google Chat", ("chat.googleapis.com",)),
    "gotify": ("Gotify", (OWN_HOST,)),
    "gotifys": ("Gotify", (OWN_HOST,)),
    "mmost": ("Mattermost", (OWN_HOST,)),
    "mmosts": ("Mattermost", (OWN_HOST,)),
    "ntfy": ("ntfy", ("ntfy.sh", OWN_HOST)),
    "ntfys": ("ntfy", ("ntfy.sh", OWN_HOST)),
    "pbul": ("Pushbullet", ("api.pushbullet.com",)),
    "pover": ("Pushover", ("api.pushover.net",)),
    "rocket": ("Rocket.Chat", (OWN_HOST,)),
    "rockets": ("Rocket.Chat", (OWN_HOST,)),
    "slack": ("Slack", ("slack.com",)),
    "tgram": ("Telegram", ("api.telegram.org",)),
    "workflows": (TEAMS, ("logic.azure.com", "api.powerplatform.com")),
    "wxteams": ("Webex", ("webexapis.com", "api.ciscospark.com")),
}
"""The services by the scheme of their address, each with its name and its hosts; subdomains of
these hosts are included.

`OWN_HOST` stands for the hosts that GADGET_CHAT_HOSTS names.
"""
LONGEST, MAX_ITEMS = 500, 5
REFUSALS = (400, 401, 403, 404, 410)
"""The response statuses for which a retry would not help."""
LIMITS = NetworkLimits(total_s=20.0, response_bytes=200_000, redirects=0)
_FRAMING = frozenset(
    {"accept-encoding", "connection", "content-length", "host", "transfer-encoding"}
)
_LIVE = str.maketrans("<>@[]`*", "‹›＠()'∗")  # noqa: RUF001
"""The characters that a service may read as a mention, a link or formatting, with their
replacements."""


@dataclass(frozen=True)
class ChatAddress:
    """The address of a person or a channel at a chat service.

    Attributes:
        sender: apprise's sender for the address.
        service: the name of the service.
        hosts: the hosts to which the service's requests may go.
    """

    sender: NotifyBase
    service: str
    hosts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> ChatAddress | None:
        """Parse an address in apprise's form, such as `slack://token/token/token`; return None if
        it is not supported.

        Several receivers are refused, and so are options after a question mark, because some of
        them name files to read. The address of a Telegram bot must name a chat; otherwise, apprise
        would choose the last person who wrote to it.
        """
        scheme = text.partition("://")[0].lower()
        if len(text) > LONGEST or scheme not in SERVICES or "?" in text or not text.isprintable():
            return None
        asset = AppriseAsset(
            app_id="Gadget", image_url_mask="", image_url_logo="", storage_mode=MEMORY
        )
        sender = Apprise.instantiate(text, asset=asset)
        if (
            not isinstance(sender, NotifyBase)
            or len(sender) != 1
            or getattr(sender, "detect_owner", False)
        ):
            return None
        # No pause between requests: a notification needs only a few, all to one receiver.
        sender.request_rate_per_sec = 0
        return cls(sender, *SERVICES[scheme])

    @property
    def server(self) -> str:
        """The server that the address names; empty if it names none."""
        is_cloud = getattr(self.sender, "mode", "") == "cloud"
        names_one = OWN_HOST in self.hosts or self.service == TEAMS
        return str(self.sender.host or "").lower() if names_one and not is_cloud else ""

    def send(self, title: str, text: str) -> None:
        """Send a notification.

        Raises:
            DeliveryError: the service refused it, or was unreachable.
        """
        door = _Door(self.hosts)
        try:
            with _open_door(door):
                is_sent = self.sender.notify(body=text, title=title, body_format=NotifyFormat.TEXT)
        except Exception as error:  # noqa: BLE001 - its text may hold the address
            raise DeliveryError(
                f"the notification to {self.service} could not be sent: {type(error).__name__}"
            ) from None
        if not is_sent:
            raise DeliveryError(door.describe_problem(self.service), is_final=door.is_final)


def send(address: str, notification: Notification) -> None:
    """Send a notification by the chat service of this address.

    Raises:
        DeliveryError: the service refused it, or was unreachable.
    """
    chat = ChatAddress.parse(address)
    if chat is None:
        raise DeliveryError("the address is no longer valid", is_final=True)
    items = tuple((sentence.translate(_LIVE), link) for sentence, link in notification.items)
    if len(items) > MAX_ITEMS:
        items = (
            (
                notification.subject.translate(_LIVE),
                f"{settings.GADGET_LINK_BASE}{notification.path}",
            ),
        )
    chat.send("Gadget", replace(notification, items=items).text)


def find_service(address: str) -> str:
    """Return the name of the service of this address.

    Raises:
        Invalid: the text is not an address of a supported service, or it names a server that is not
            allowed or not reached by https.
    """
    chat = ChatAddress.parse(address)
    if chat is None:
        raise Invalid("chat", "This is not an address of a supported chat service.")
    if chat.server and not may_reach(chat.server, chat.hosts):
        raise Invalid(
            "chat",
            f"The server {chat.server[:100]} is not in GADGET_CHAT_HOSTS. Ask an administrator.",
        )
    if chat.server and not chat.sender.secure and not _is_named(chat.server):
        scheme = address.partition("://")[0].lower()
        raise Invalid("chat", f"Use https: change {scheme}:// to {scheme}s://.")
    return chat.service


class _Door(BaseAdapter):
    """Sends the requests of one notification through the guarded client, only to the hosts of its
    service."""

    def __init__(self, hosts: tuple[str, ...]) -> None:
        super().__init__()
        self._hosts = hosts
        self._deadline = time.monotonic() + LIMITS.total_s
        self._problem = ""
        self._refusal = 0
        self._has_responded = False

    @property
    def is_final(self) -> bool:
        """True if another attempt would not help."""
        return self._refusal in REFUSALS or (
            self._has_responded and not self._refusal and not self._problem
        )

    def describe_problem(self, service: str) -> str:
        """Return the reason why the notification was not sent, without its address."""
        if self._problem or self._refusal:
            return self._problem or f"{service} responded with {self._refusal}"
        return (
            f"{service} refused the notification"
            if self._has_responded
            else f"{service} was not contacted"
        )

    @override
    def send(self, request: PreparedRequest, *_: Any, **__: Any) -> Response:
        """Send one request.

        Raises:
            requests.ConnectionError: the host is not allowed, or there was no response.
        """
        try:
            reply = self._ask(request)
        except ToolError as error:
            self._problem = error.message
            raise requests.ConnectionError(error.message) from None
        self._has_responded = True
        self._refusal = self._refusal or (reply.status if reply.status >= 300 else 0)
        response = Response()
        response.status_code, response.url, response.request = reply.status, reply.url, request
        response.headers.update(
            {name: value for name, value in reply.headers.items() if name != "location"}
        )
        response.raw = BytesIO(reply.content)
        return response

    def _ask(self, request: PreparedRequest) -> ClientResponse:
        url = read_url(request.url or "")
        host = get_host(url)
        is_own = OWN_HOST in self._hosts and _is_named(host)
        if not may_reach(host, self._hosts) or (url.scheme != "https" and not is_own):
            raise ToolError(
                ErrorCode.SECURITY_VIOLATION, f"the server {host} is not in GADGET_CHAT_HOSTS"
            )
        allowed = settings.CHAT_HOSTS if is_own else PrivateHosts()
        body = request.body.encode() if isinstance(request.body, str) else request.body
        if not isinstance(body, bytes | None):
            raise TypeError("apprise sends only texts")
        headers = {
            name: str(value)
            for name, value in request.headers.items()
            if name.lower() not in _FRAMING
        }
        release_connection()
        # All requests share one time limit.
        limits = replace(LIMITS, total_s=max(0.1, self._deadline - time.monotonic()))
        client = GuardedClient(
            NetworkAccess(requested=frozenset({host}), installation=allowed), limits
        )
        return client.request(request.method or "GET", str(url), headers, body, repeatable=True)

    @override
    def close(self) -> None:
        """Do nothing: each request has its own connection."""


_door: ContextVar[_Door | None] = ContextVar("chat_door", default=None)


@contextmanager
def _open_door(door: _Door) -> Iterator[None]:
    token = _door.set(door)
    try:
        yield
    finally:
        _door.reset(token)


def _get_door(_: requests.Session, url: str) -> BaseAdapter:  # noqa: ARG001 - the params of the method that it replaces
    """Return the adapter for every request of `requests` in this process.

    Raises:
        requests.ConnectionError: no notification is being sent.
    """
    door = _door.get()
    if door is None:
        raise requests.ConnectionError("nothing is sent except notifications")
    return door


def may_reach(host: str, hosts: Collection[str]) -> bool:
    """Return True if the host is one of `hosts` or a subdomain of one of them. In `hosts`, OWN_HOST
    stands for the hosts of GADGET_CHAT_HOSTS."""
    is_known = any(host == each or host.endswith(f".{each}") for each in hosts if each != OWN_HOST)
    return is_known or (OWN_HOST in hosts and _is_named(host))


def _is_named(host: str) -> bool:
    """Return True if GADGET_CHAT_HOSTS names the host."""
    with suppress(ValueError):
        return bool(settings.CHAT_HOSTS.may_cover(host, ip_address(host)))
    return any(entry.name == host for entry in settings.CHAT_HOSTS.entries)


requests.Session.get_adapter = _get_door  # type: ignore[method-assign, assignment]
# Silence Apprise: the errors that it logs may contain addresses, which are secrets.
logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
