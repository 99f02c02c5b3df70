"""A running web process, and the requests that tests send to it."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.test import Client

from agents.accounts.membership import issue_token
from tests.gadget_site.edge.wire import Wire, WireResponse
from tests.processes import Installation
from tests.world import World

CSRF = "c" * 32
BOUNDARY = "edge-of-a-part"


@dataclass
class Site:
    """The process and the rows that it reads."""

    installation: Installation
    world: World

    def connect(self) -> Wire:
        return Wire(self.installation.port)

    def cookies(self, username: str) -> dict[str, str]:
        """Return the headers of a browser in which this person is logged in, with a CSRF token for
        forms."""
        client = Client()
        client.force_login(self.world.users[username])
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        return {
            "Cookie": f"{settings.SESSION_COOKIE_NAME}={session}; csrftoken={CSRF}",
            "X-CSRFToken": CSRF,
        }

    def token(self, username: str) -> dict[str, str]:
        """Return the header of a program with this person's token."""
        return {"Authorization": f"Bearer {issue_token(self.world.member(username), 'edge')[1]}"}

    def upload(self, name: str, content: bytes, headers: dict[str, str]) -> WireResponse:
        """Send a file with the form of the Files page."""
        with self.connect() as wire:
            return wire.ask("POST", "/files/upload/", multipart() | headers, form(name, content))


def multipart() -> dict[str, str]:
    return {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def form(name: str, content: bytes) -> bytes:
    head = (
        f"--{BOUNDARY}\r\n"
        f'Content-Disposition: form-data; name="files"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    return head.encode() + content + f"\r\n--{BOUNDARY}--\r\n".encode()
