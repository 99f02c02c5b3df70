"""A mail server over real SMTP, in a test's process."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from functools import partial
from typing import Any, Self

from aiosmtpd.smtp import SMTP

ACCEPTED = "250 OK"
logging.getLogger("mail.log").setLevel(logging.WARNING)


@dataclass(frozen=True)
class ReceivedMail:
    """A received message.

    Attributes:
        at: the wall-clock time of its arrival.
    """

    recipient: str
    message: EmailMessage
    at: float = field(default_factory=time.time)

    @property
    def subject(self) -> str:
        return str(self.message["Subject"])

    @property
    def text(self) -> str:
        return str(self.message.get_content())


class MailServer:
    """A server that accepts every message, or gives the configured responses.

    Attributes:
        reply: the response to each message.
        recipient_reply: the response to each recipient.
        choose_delay: returns the number of seconds between a received message and the response.
    """

    def __init__(self) -> None:
        self.received: list[ReceivedMail] = []
        self.reply = ACCEPTED
        self.recipient_reply = ACCEPTED
        self.choose_delay: Callable[[], float] = lambda: 0.0
        self._changed = threading.Condition()
        self._open = threading.Event()
        self._open.set()
        self._held = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="mail-server", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(30)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    @property
    def url(self) -> str:
        return f"smtp+plain://127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, Any]:
        """Django's own mail settings that name this server."""
        return {
            "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
            "EMAIL_HOST": "127.0.0.1",
            "EMAIL_PORT": self.port,
            "EMAIL_USE_TLS": False,
            "EMAIL_USE_SSL": False,
            "DEFAULT_FROM_EMAIL": "gadget@example.com",
        }

    def use_in(self, settings: Any) -> None:
        """Let the process send through this server."""
        for name, value in self.settings.items():
            setattr(settings, name, value)

    def hold(self) -> None:
        """Receive messages, but do not respond to them until `release`."""
        self._open.clear()

    def release(self) -> None:
        self._open.set()

    def wait_for(self, count: int, seconds: float = 60.0) -> list[ReceivedMail]:
        """Wait until this many messages were received; return them."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.received) >= count, seconds), (
                self.received
            )
            return list(self.received)

    @property
    def held(self) -> int:
        """The number of messages that were received without a response."""
        return self._held

    def wait_for_held(self, count: int = 1, seconds: float = 60.0) -> None:
        """Wait until this many messages were received without a response."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._held >= count, seconds)

    async def _listen(self) -> asyncio.Server:
        make_connection = partial(SMTP, self, hostname="mail.test", loop=self._loop)
        return await self._loop.create_server(make_connection, "127.0.0.1", 0)

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        if self.recipient_reply == ACCEPTED:
            envelope.rcpt_tos.append(address)
        return self.recipient_reply

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        if self.reply != ACCEPTED:
            return self.reply
        message = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        with self._changed:
            self.received += [ReceivedMail(address, message) for address in envelope.rcpt_tos]
            self._held += 1
            self._changed.notify_all()
        try:
            await asyncio.sleep(self.choose_delay())
            await asyncio.get_running_loop().run_in_executor(None, self._open.wait)
        finally:  # even if the client has disconnected
            with self._changed:
                self._held -= 1
                self._changed.notify_all()
        return ACCEPTED
