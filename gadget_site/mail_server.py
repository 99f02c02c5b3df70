"""Read and check the address of the mail server."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from gadget_site.addresses import hide_password
from gadget_site.faults import SettingError
from gadget_site.variables import Variables, is_host

EXAMPLE = "smtp://gadget:password@mail.example.com:587"
SENDER_EXAMPLE = "gadget@example.com"
ENCRYPTIONS = {"smtp": ("starttls", 587), "smtps": ("ssl", 465), "smtp+plain": ("none", 25)}
"""Encryption and usual port by scheme; without encryption, passwords and messages can be read on the way."""
_SENDER = re.compile(r"[^@\s<>]+@[A-Za-z0-9.-]+")


@dataclass(frozen=True)
class MailServer:
    """The server that sends e-mail; an empty host means that there is none."""

    host: str = ""
    port: int = 587
    user: str = ""
    password: str = ""
    encryption: str = "starttls"
    sender: str = "gadget@localhost"


def read_mail_server(variables: Variables) -> MailServer:
    """Read MAIL_URL and MAIL_FROM.

    Raises:
        SettingError: one of them is wrong, or only one is set.
    """
    url, sender = variables.text("MAIL_URL"), variables.text("MAIL_FROM")
    if not url and not sender:
        return MailServer()
    if not url:
        raise SettingError("MAIL_URL", "is not set, but MAIL_FROM is", EXAMPLE)
    server = _parse(url)
    if not sender:
        raise SettingError("MAIL_FROM", "is not set; it is required with MAIL_URL", SENDER_EXAMPLE)
    if not _SENDER.fullmatch(sender):
        raise SettingError("MAIL_FROM", f"{sender!r} is not an e-mail address", SENDER_EXAMPLE)
    return replace(server, sender=sender)


def _parse(url: str) -> MailServer:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise SettingError("MAIL_URL", f"{hide_password(url)!r} is not an address: {error}", EXAMPLE) from error
    if parts.scheme not in ENCRYPTIONS:
        fault = f"{hide_password(url)!r} begins with none of {', '.join(f'{name}://' for name in ENCRYPTIONS)}"
        raise SettingError("MAIL_URL", fault, EXAMPLE)
    if not is_host(parts.hostname or "") or port == 0 or parts.path.strip("/") or parts.query or parts.fragment:
        raise SettingError("MAIL_URL", f"{hide_password(url)!r} is not smtp://user:password@host:port", EXAMPLE)
    encryption, usual_port = ENCRYPTIONS[parts.scheme]
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if not (user + password).isascii():
        raise SettingError("MAIL_URL", "its user or password has other characters than ASCII", EXAMPLE)
    return MailServer(parts.hostname or "", port or usual_port, user, password, encryption)
