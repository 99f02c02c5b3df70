"""Celery's connection to Redis: it reconnects quickly, and drops queue elements that Gadget did not
write."""

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
    """A channel that survives queue elements written by other programs, and keys of the wrong type.

    It keeps no copies of unacknowledged messages. Messages are only hints: sweepers and workers
    also find the runs whose messages were lost.
    """

    ack_emulation = False

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)
        except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
            log.warning("dropped a queue element that is not a message", error=str(error))
            return True

    def basic_consume(
        self, queue: str, no_ack: bool, callback: Callable[[Any], None], **options: Any
    ) -> Any:
        def take(message: Any) -> None:
            is_taken = False
            with log_and_continue("taking a message from the queue"):
                callback(message)
                is_taken = True
            if not is_taken and not message.acknowledged:
                message.reject()  # otherwise, it would block other messages forever

        return super().basic_consume(queue, no_ack, take, **options)

    def queue_declare(self, queue: str = "", *args: Any, **options: Any) -> Any:
        """Delete keys of the wrong type, and declare the queue. Every connection begins here, and a
        key of the wrong type would break it."""
        self._delete_wrong_keys(
            {self._q_for_pri(queue, priority): "list" for priority in self.priority_steps}
        )
        return super().queue_declare(queue, *args, **options)

    def _queue_bind(self, exchange: str, *args: Any) -> None:
        self._delete_wrong_keys({self.keyprefix_queue % (exchange,): "set"})
        super()._queue_bind(exchange, *args)

    def _delete_wrong_keys(self, kinds: dict[str, str]) -> None:
        with self.conn_or_acquire() as client:
            for key, kind in kinds.items():
                found = client.type(key).decode()
                if found not in (kind, "none"):
                    log.warning("deleted a queue key that is not ours", key=key, type=found)
                    client.delete(key)


class SturdyTransport(Transport):
    """A transport that survives malformed elements in the queue."""

    Channel = SturdyChannel

    def _deliver(self, message: Any, queue: str) -> None:
        with log_and_continue("reading a message from the queue"):
            super()._deliver(message, queue)


class PatientConnection(Connection):
    """A connection that keeps trying to reconnect to Redis, at least every two seconds."""

    def get_transport_cls(self) -> type[Transport]:
        return SturdyTransport

    def _ensure_connection(self, *args: Any, **options: Any) -> Any:
        options.update(interval_start=0.2, interval_step=0.4, interval_max=LONGEST_PAUSE_S)
        return super()._ensure_connection(*args, **options)


class PatientQueue(AMQP):  # type: ignore[misc]
    """Celery's access to the broker, through `PatientConnection`."""

    Connection = PatientConnection
