"""Parse the mail server's address, and the sender of its e-mails."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from gadget_site.addresses import hide_password
from gadget_site.faults import WrongValueError
from gadget_site.parsers import is_host

ENCRYPTIONS = {"smtp": ("starttls", 587), "smtps": ("ssl", 465), "smtp+plain": ("none", 25)}
"""Encryption and default port by scheme; without encryption, passwords and e-mails can be read in
transit."""
_SENDER = re.compile(r"[^@\s<>]+@[A-Za-z0-9.-]+")


@dataclass(frozen=True)
class MailServer:
    """The server that sends e-mail; an empty host means that there is none."""

    host: str = ""
    port: int = 587
    user: str = ""
    password: str = ""
    encryption: str = "starttls"


def parse_sender(text: str) -> str:
    if not _SENDER.fullmatch(text):
        raise WrongValueError(f"{text!r} is not an e-mail address")
    return text


def parse_mail_url(url: str) -> MailServer:
    """Parse `smtp://user:password@host:port`, or such an address with another scheme of
    ENCRYPTIONS."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise WrongValueError(f"{hide_password(url)!r} is not an address: {error}") from error
    if parts.scheme not in ENCRYPTIONS:
        fault = f"{hide_password(url)!r} does not begin with any of {', '.join(f'{name}://' for name in ENCRYPTIONS)}"
        raise WrongValueError(fault)
    if (
        not is_host(parts.hostname or "")
        or port == 0
        or parts.path.strip("/")
        or parts.query
        or parts.fragment
    ):
        raise WrongValueError(f"{hide_password(url)!r} is not smtp://user:password@host:port")
    encryption, usual_port = ENCRYPTIONS[parts.scheme]
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if not (user + password).isascii():
        raise WrongValueError("its user or password contains non-ASCII characters")
    return MailServer(parts.hostname or "", port or usual_port, user, password, encryption)
