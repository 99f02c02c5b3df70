"""Celery's connection to Redis: recovers quickly after a loss, and drops anything that is not our message."""

# mypy: disable-error-code="no-untyped-call, override"
# (most of kombu has no types)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog
from celery.app.amqp import AMQP
from kombu.connection import Connection
from kombu.transport.redis import Channel, Transport

from agents.platform.error_boundary import log_and_continue

LONGEST_PAUSE_S = 2.0
log = structlog.get_logger(__name__)


class SturdyChannel(Channel):
    """A channel that no foreign element or key can stop.

    It keeps no copy of a message until it is acknowledged: sweepers and workers find the run of a lost hint.
    """

    ack_emulation = False

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)
        except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
            log.warning("dropped an element of the queue that is not a message", error=str(error))
            return True

    def basic_consume(self, queue: str, no_ack: bool, callback: Callable[[Any], None], **options: Any) -> Any:
        def take(message: Any) -> None:
            is_taken = False
            with log_and_continue("taking a message from the queue"):
                callback(message)
                is_taken = True
            if not is_taken and not message.acknowledged:
                message.reject()  # or it would occupy the place of other messages forever

        return super().basic_consume(queue, no_ack, take, **options)

    def queue_declare(self, queue: str = "", *args: Any, **options: Any) -> Any:
        """Delete foreign keys first: every connection begins here, and a key of a wrong type would end it."""
        self._drop_foreign_keys({self._q_for_pri(queue, priority): "list" for priority in self.priority_steps})
        return super().queue_declare(queue, *args, **options)

    def _queue_bind(self, exchange: str, *args: Any) -> None:
        self._drop_foreign_keys({self.keyprefix_queue % (exchange,): "set"})
        super()._queue_bind(exchange, *args)

    def _drop_foreign_keys(self, kinds: dict[str, str]) -> None:
        with self.conn_or_acquire() as client:
            for key, kind in kinds.items():
                found = client.type(key).decode()
                if found not in (kind, "none"):
                    log.warning("deleted a key of the queue that is not ours", key=key, type=found)
                    client.delete(key)


class SturdyTransport(Transport):
    """A transport that accepts any element."""

    Channel = SturdyChannel

    def _deliver(self, message: Any, queue: str) -> None:
        with log_and_continue("reading a message from the queue"):
            super()._deliver(message, queue)


class PatientConnection(Connection):
    """A connection that retries a lost Redis at least every two seconds, for as long as it takes."""

    def get_transport_cls(self) -> type[Transport]:
        return SturdyTransport

    def _ensure_connection(self, *args: Any, **options: Any) -> Any:
        options.update(interval_start=0.2, interval_step=0.4, interval_max=LONGEST_PAUSE_S)
        return super()._ensure_connection(*args, **options)


class PatientQueue(AMQP):  # type: ignore[misc]
    """Celery's access to the broker, with our connections."""

    Connection = PatientConnection
