"""The outboxes that the engine empties: one for each kind of channel. An unknown kind is refused.

A subject that writes deliveries registers its outboxes in its `apps.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, ClassVar, Generic, TypeVar

from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.accounts.models import Membership
from agents.deliveries.failures import DeliveryError
from agents.deliveries.models import DeliveryBase, DeliveryStatus, ReceiverBase

MAX_TRIES, LONGEST_PAUSE_S = 8, 3600.0
D = TypeVar("D", bound=DeliveryBase)
R = TypeVar("R", bound=ReceiverBase)


@dataclass(frozen=True)
class DeliveryEnding:
    """The status that deliveries get when an attempt ends without an error."""

    status: str = DeliveryStatus.SENT
    problem: str = ""


@dataclass(frozen=True)
class DeliveryBatch(Generic[D, R]):
    """The deliveries of one receiver that are sent together.

    Attributes:
        until: the time at which another sender may retry.
    """

    outbox: Outbox[D, R]
    receiver: R
    deliveries: tuple[D, ...]
    until: datetime

    @property
    def ids(self) -> list[int]:
        return [each.pk for each in self.deliveries]

    @property
    def tries(self) -> int:
        """The number of started attempts, including this one."""
        return self.deliveries[0].tries

    @property
    def key(self) -> str:
        """A key that is the same for every attempt to send these deliveries."""
        ids = ",".join(str(pk) for pk in self.ids)
        return f"{sha256(ids.encode()).hexdigest()[:32]}.gadget"

    def keep(self, ids: Collection[int]) -> DeliveryBatch[D, R]:
        """Return the batch with only these deliveries."""
        return replace(self, deliveries=tuple(each for each in self.deliveries if each.pk in ids))

    def select(self) -> QuerySet[D]:
        """Select the rows that wait, unless another sender has begun a later attempt."""
        return self.select_waiting().filter(tries=self.tries)

    def select_waiting(self) -> QuerySet[D]:
        """Select the rows that wait, including those with a later attempt by another sender."""
        return self.outbox.select_all().filter(pk__in=self.ids, status=DeliveryStatus.WAITING)


class Outbox(ABC, Generic[D, R]):
    """The deliveries by one kind of channel, with the queries and steps that their subject defines.

    Attributes:
        kind: the kind of channel.
        receiver: the field of a delivery that names its receiver.
        host_column: the column with a receiver's host; empty if the host is not stored in a column.
        locks: the rows that taking a delivery locks; if the receiver's row is one of them, all
            processes together send the receiver one batch at a time.
        related: the related rows that sending reads.
        try_s: the number of seconds after which an attempt is considered lost, unless its sender
            renews it.
        max_tries: the number of attempts after which a delivery is given up; None if another limit
            applies.
        longest_pause_s: the longest pause between two attempts, in seconds.
        repeatable: the states of deliveries that people may send again.
        noun, other_state: the word for a delivery, and the predicate for one that cannot be sent
            again, such as `has not failed`.
    """

    kind: str
    model: ClassVar[type[DeliveryBase]]
    receiver: ClassVar[str]
    host_column: ClassVar[str] = ""
    locks: ClassVar[tuple[str, ...]] = ("self",)
    related: ClassVar[tuple[str, ...]] = ()
    try_s: ClassVar[float] = 30.0
    max_tries: ClassVar[int | None] = MAX_TRIES
    longest_pause_s: ClassVar[float] = LONGEST_PAUSE_S
    repeatable: ClassVar[tuple[str, ...]]
    noun: ClassVar[str]
    other_state: ClassVar[str]

    def select_all(self) -> QuerySet[D]:
        """Select all rows of the table."""
        return self.model._default_manager.all()  # type: ignore[return-value]

    def select_due(self, *, only_healthy: bool) -> QuerySet[D]:
        """Select the due rows.

        Args:
            only_healthy: True to select only rows for receivers whose last batch arrived.
        """
        due = self.select_all().filter(status=DeliveryStatus.WAITING, due_at__lte=Now())
        return due.filter(**{f"{self.receiver}__failing_since": None}) if only_healthy else due

    @abstractmethod
    def select_visible(self, member: Membership) -> QuerySet[D]:
        """Select the deliveries that the member sees and may send again.

        Raises:
            Forbidden: the member may not see deliveries of this kind.
        """

    def begin_again(self, member: Membership, delivery: D) -> Mapping[str, Any]:  # noqa: ARG002 - for outboxes that read it
        """Record that the member sends the delivery again; return further columns to reset, with
        their values.

        Raises:
            Conflict: the delivery cannot be sent now.
        """
        return {}

    def choose(self, first: D, same: QuerySet[D]) -> tuple[D, ...]:  # noqa: ARG002 - for outboxes that read it
        """Choose the deliveries for one batch.

        Args:
            first: the delivery that has been due the longest.
            same: all due deliveries to the same receiver with the same number of attempts,
                including `first`.
        """
        return (first,)

    def hold(self, receiver: R, until: datetime) -> None:
        """Keep other processes from sending to this receiver. Called in the transaction that begins
        an attempt."""

    def release(self, batch: DeliveryBatch[D, R]) -> None:
        """Let other processes send to this receiver again."""

    def explain_drops(self, batch: DeliveryBatch[D, R]) -> Mapping[int, str]:  # noqa: ARG002 - for outboxes that read it
        """Return the reason for each delivery that is no longer needed, by its id."""
        return {}

    @abstractmethod
    def send(self, batch: DeliveryBatch[D, R]) -> DeliveryEnding:
        """Write the notification or the event, and send it by the channel.

        Raises:
            DeliveryError: the notification or event was not sent.
        """

    def is_given_up(self, batch: DeliveryBatch[D, R]) -> bool:
        """Return True if a failed batch is not sent again."""
        return self.max_tries is not None and batch.tries >= self.max_tries

    @abstractmethod
    def note_sent(self, batch: DeliveryBatch[D, R]) -> None:
        """Record in the receiver's row that a batch arrived."""

    @abstractmethod
    def note_failure(
        self, batch: DeliveryBatch[D, R], error: DeliveryError, pause: timedelta | None
    ) -> None:
        """Record the failure in the receiver's row. If the receiver has failed for a long time,
        switch it off, or pause sending to it.

        Args:
            pause: the pause before the next attempt; None if the deliveries were given up.
        """


OUTBOXES: dict[str, Outbox[Any, Any]] = {}
"""The outboxes by kind; `register` fills it."""


def register(*outboxes: Outbox[Any, Any]) -> None:
    """Let the engine empty these outboxes."""
    OUTBOXES.update({outbox.kind: outbox for outbox in outboxes})
