"""Receive messages to triggers: check and filter them, and start one run for each message, even if
the message is sent several times."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Model, Q
from django.db.models.functions import Now
from django.utils import timezone

from agents.accounts.models import Membership, Role
from agents.accounts.notice_facts import NoticeFact, NoticeKind, tell
from agents.platform.log_context import log_for_organization
from agents.platform.rate_limits import count_or_wait
from agents.platform.refusals import Conflict, NotFound, Refusal, TooManyRequests
from agents.runs import actions
from agents.runs.models import Origin, Run, RunStatus
from agents.runs.models.run import TRIGGER_REQUEST_PREFIX
from agents.triggers.models import ReceivedMessage, ReceivedStatus, Scheme, Trigger
from agents.triggers.payloads import read_payload
from agents.triggers.queries import ACTIVE_TRIGGER
from agents.triggers.schemes import Incoming, Proof, find_key, find_objection
from agents.triggers.templates import attach_payload, fill_template
from tools.contract.canonical import storable_json
from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.objections import Objection

Joined = TypeVar("Joined", bound=Model)

LARGEST_PAYLOAD = 256 * 1024
MAX_PER_MINUTE = 3_000
"""The maximum number of messages that a process receives per minute for one trigger."""
MAX_NOTED_REFUSALS = 20
"""The maximum number of refused unproved messages that are stored per minute and trigger, so that a
stranger cannot fill the table."""
TOLD_EVERY = timedelta(hours=1)
"""The minimum time between two entries in the log about the refusals of a trigger; people get one
notice a day."""
KEPT = 200
"""The number of messages that are kept for a trigger although they did not start a run. Messages
with and without content are counted separately."""
WAIT_S = 60
"""Seconds after which a sender may retry while too many runs wait."""


class Unproved(Refusal):
    """The sender's proof is missing or wrong, or the message is too old."""

    status, code = 401, "unproved"


class TooLarge(Refusal):
    """The message exceeds LARGEST_PAYLOAD."""

    status, code = 413, "too_large"


@dataclass(frozen=True)
class Taken:
    """The outcome of a received message that was not refused.

    Attributes:
        run: the run that the message has started, now or earlier.
        response: the response to a test by the sender's system.
    """

    run: Run | None = None
    response: Mapping[str, str] | None = None


def receive(public_id: str, headers: Mapping[str, str], body: bytes) -> Taken:
    """Receive a message: start its run, return the run of an identical message, or filter it out.

    Raises:
        NotFound: there is no trigger with this id, or it is switched off.
        Unproved, TooLarge, TooManyRequests, Invalid
        Conflict: the person or the employee of the trigger cannot start runs now.
    """
    trigger = _find_trigger(public_id)
    log_for_organization(trigger.organization_id)
    incoming = Incoming(headers, body, time.time())
    try:
        if len(body) > LARGEST_PAYLOAD:
            raise TooLarge(f"a message may have at most {LARGEST_PAYLOAD:,} bytes")
        if not trigger.secret:
            raise Unproved(
                "the trigger's secret cannot be read, so every message is refused; create a new secret"
            )
        proof = Proof(trigger.secret, trigger.header)
        if (objection := find_objection(trigger.scheme, incoming, proof)) is not None:
            raise Unproved(objection.why)
        if wait_s := count_or_wait(f"trigger:{trigger.pk}", MAX_PER_MINUTE):
            raise TooManyRequests("too many messages in the last minute", retry_after=wait_s)
        payload = read_payload(headers.get("content-type", ""), body)
    except Refusal as refusal:
        _note_refusal(trigger, refusal.detail)
        raise
    if (response := _find_handshake_response(trigger, incoming, payload)) is not None:
        _note(
            trigger,
            ReceivedMessage(
                status=ReceivedStatus.ANSWERED, reason="the sender tested the connection"
            ),
        )
        return Taken(response=response)
    key, is_own = find_key(trigger.scheme, incoming, payload)
    return _start_or_refuse(
        trigger, payload, key, timedelta(0) if is_own else timedelta(hours=trigger.repeat_hours)
    )


def start_again(member: Membership, message_id: int) -> Run:
    """Start another run for an earlier message, on behalf of this member.

    Raises:
        Forbidden, NotFound, Conflict, TooManyRequests, Invalid
    """
    member.require(Role.OPERATOR, "send a message again")
    rows = ReceivedMessage.objects.filter(
        trigger__organization_id=member.organization_id, trigger__removed_at=None
    ).exclude(payload="")
    earlier = rows.select_related(*_TRIGGER_PARTS).filter(pk=message_id).first()
    if earlier is None:
        raise NotFound(f"there is no message {message_id} that could be sent again")
    trigger = earlier.trigger
    if not trigger.is_active:
        raise Conflict("the trigger is switched off")
    repeats = ReceivedMessage.objects.filter(replay_of=earlier).count()
    received = ReceivedMessage(
        trigger=trigger,
        key=f"r{earlier.pk}:{repeats + 1}",
        payload=earlier.payload,
        replay_of=earlier,
        by=member.user,
    )
    return _start(received, member, json.loads(earlier.payload))


def find_received_message(run: Run) -> Any:
    """Return the payload of the message that started the run; None if no trigger started the run,
    or the message was deleted."""
    if run.origin != Origin.TRIGGER:
        return None
    received = ReceivedMessage.objects.filter(run=run).values_list("payload", flat=True).first()
    return None if received is None else json.loads(received)


_PARTS = ("organization", "employee", "created_by", "made_by", "task_by", "secret_by")
_TRIGGER_PARTS = [f"trigger__{part}" for part in _PARTS]


def _find_trigger(public_id: str) -> Trigger:
    row = ACTIVE_TRIGGER.fetch_one(public_id)
    if row is None:
        raise NotFound("there is no such trigger")
    trigger = row.trigger
    trigger.organization, trigger.employee = row.organization, _present(row.employee)
    trigger.made_by, trigger.task_by, trigger.secret_by = map(
        _present, (row.maker, row.author, row.keeper)
    )
    return trigger


def _present(joined: Joined) -> Joined | None:
    return None if joined.pk is None else joined


def _find_handshake_response(
    trigger: Trigger, incoming: Incoming, payload: Any
) -> Mapping[str, str] | None:
    """Return the response to a test of the address, which starts no run; None for any other
    message."""
    if (
        trigger.scheme == Scheme.SLACK
        and isinstance(payload, dict)
        and payload.get("type") == "url_verification"
    ):
        return {"challenge": str(payload.get("challenge", ""))[:500]}
    if trigger.scheme == Scheme.GITHUB and incoming.headers.get("x-github-event") == "ping":
        return {"status": "pong"}
    return None


def _start_or_refuse(trigger: Trigger, payload: Any, key: str, window: timedelta) -> Taken:
    """Start the run of a message, unless it is a repeat or is filtered out.

    Args:
        window: the time in which the same key means the same message; 0 means always.
    """
    same_key = ReceivedMessage.objects.filter(
        trigger=trigger, key=key, status=ReceivedStatus.STARTED
    )
    newest_first = same_key.order_by("-pk").annotate(now=Now())
    earlier = list(newest_first.values_list("received_at", "run_id", "now"))
    # The generation, a part of the unique request id, comes from the same rows, so only one of two
    # identical messages that arrive at the same time can start a run.
    generation = f":{len(earlier)}" if window else ""
    repeated = [
        run_id for received_at, run_id, now in earlier if not window or received_at > now - window
    ]
    if repeated and (same := Run.objects.filter(pk=repeated[0] or 0).first()) is not None:
        return Taken(same)
    if (filtered := _find_filter(trigger, payload)) is not None:
        text = storable_json(payload)
        _note(
            trigger,
            ReceivedMessage(
                key=key, status=ReceivedStatus.FILTERED, reason=filtered.why[:300], payload=text
            ),
        )
        return Taken()
    received = ReceivedMessage(trigger=trigger, key=key, payload=storable_json(payload))
    try:
        return Taken(_start(received, _find_member(trigger), payload, generation))
    except Refusal as refusal:
        _note_refusal(trigger, refusal.detail, received)
        raise


def _start(
    received: ReceivedMessage, member: Membership, payload: Any, generation: str = ""
) -> Run:
    """Start the run and store its message in one transaction; if an identical request has started a
    run, return that run."""
    trigger = received.trigger
    if trigger.employee_id is None:
        raise Conflict("the trigger's employee was deleted")
    _refuse_flood(trigger)
    task = fill_template(trigger.task, payload)[: actions.MAX_TEXT]
    submission = actions.Submission(
        employee_id=trigger.employee_id,
        task=task,
        client_request_id=f"{TRIGGER_REQUEST_PREFIX}{trigger.pk}:{received.key}{generation}",
        origin=Origin.TRIGGER,
        trigger=trigger.name,
        attachment=attach_payload(payload),
    )
    with transaction.atomic():
        run, is_new = actions.submit(member, submission)
        if is_new:
            received.requesters = _list_requesters(trigger, received)
            received.status, received.run, received.template = (
                ReceivedStatus.STARTED,
                run,
                trigger.task,
            )
            received.save(force_insert=True)
    return run


def _list_requesters(trigger: Trigger, received: ReceivedMessage) -> list[tuple[int, str, str]]:
    """List the people behind the run, to store them: they stay requesters even if the trigger
    changes later."""
    people = (
        (trigger.made_by, "created the trigger"),
        (trigger.created_by if received.by else None, "last saved or switched on the trigger"),
        (trigger.task_by, "wrote the trigger's task"),
        (trigger.secret_by, "set or saw the trigger's secret"),
        (received.by, "sent the message again"),
    )
    found = [(user.pk, user.get_username(), act) for user, act in people if user is not None]
    known = {trigger.created_by_id, *(user_id for user_id, _, _ in found)}
    parts = {pk: part for part, pk in (trigger.part_authors or {}).items() if pk not in known}
    others = User.objects.filter(pk__in=parts) if parts else ()
    return found + [
        (user.pk, user.get_username(), f"last changed the trigger's {parts[user.pk]}")
        for user in others
    ]


def _find_member(trigger: Trigger) -> Membership:
    """Return the member on whose behalf the trigger works.

    Raises:
        Conflict: the member has left, or may not start runs.
    """
    members = Membership.objects.filter(organization=trigger.organization, user__is_active=True)
    member = members.filter(user=trigger.created_by_id).select_related("user").first()
    if member is None or not member.may(Role.OPERATOR):
        raise Conflict(
            "the person this trigger works for can no longer start runs; someone else must save it"
        )
    member.organization = trigger.organization
    return member


def _refuse_flood(trigger: Trigger) -> None:
    """Raise TooManyRequests while too many runs of the trigger wait for a worker."""
    waiting = Run.objects.filter(status=RunStatus.QUEUED, started_by_message__trigger=trigger)
    if waiting[: trigger.max_queued].count() >= trigger.max_queued:
        raise TooManyRequests(
            f"{trigger.max_queued} runs of this trigger are already waiting", retry_after=WAIT_S
        )


def _find_filter(trigger: Trigger, payload: Any) -> Objection | None:
    """Return the reason why the payload does not pass a filter; None if it passes all filters."""
    params = payload if isinstance(payload, dict) else {"items": payload}
    for stored in trigger.filters:
        condition = Condition.from_json(stored)
        if violation := condition.find_violation(params):
            values = list(
                map(
                    _read_scalar,
                    condition.value if condition.rule is Rule.ONE_OF else [condition.value],
                )
            )
            read = replace(condition, rule=Rule.ONE_OF, value=values)
            if condition.rule not in (Rule.EQUALS, Rule.ONE_OF) or read.find_violation(params):
                return violation
    return None


def _read_scalar(text: Any) -> Any:
    """Return the number or boolean that a text from the form stands for, so that `false` also
    matches false."""
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return text
    return text if isinstance(value, dict | list) else value


def _note_refusal(trigger: Trigger, reason: str, proved: ReceivedMessage | None = None) -> None:
    """Store a refusal, with the message's content if the message was proved, so that a person can
    send it again."""
    if proved is None and count_or_wait(f"trigger-refusals:{trigger.pk}", MAX_NOTED_REFUSALS):
        return
    received = (
        ReceivedMessage(key=proved.key, payload=proved.payload) if proved else ReceivedMessage()
    )
    received.status, received.reason = ReceivedStatus.REFUSED, reason[:300]
    with transaction.atomic():
        _note(trigger, received)
        _tell_refusal(trigger, received.reason)


def _tell_refusal(trigger: Trigger, reason: str) -> None:
    """Record in the organization's log that the trigger refuses messages, at most once an hour."""
    quiet = Q(refusal_told_at=None) | Q(refusal_told_at__lte=Now() - TOLD_EVERY)
    if not Trigger.objects.filter(quiet, pk=trigger.pk).update(refusal_told_at=Now()):
        return
    tell(
        NoticeFact(
            NoticeKind.TRIGGER_REFUSED,
            trigger.organization_id,
            key=f"{trigger.pk}:{timezone.now():%Y-%m-%d}",
            detail=trigger.name,
            user_id=trigger.created_by_id,
            reason=reason,
            ids={"trigger_id": str(trigger.pk)},
        )
    )


def _note(trigger: Trigger, received: ReceivedMessage) -> None:
    """Store a message that did not start a run, and delete the oldest such messages beyond KEPT,
    separately for messages with and without content."""
    received.trigger = trigger
    received.save(force_insert=True)
    others = ReceivedMessage.objects.filter(trigger=trigger).exclude(status=ReceivedStatus.STARTED)
    others = others.exclude(payload="") if received.payload else others.filter(payload="")
    oldest = others.order_by("-pk").values_list("pk", flat=True)[KEPT : KEPT + 1].first()
    if oldest is not None:
        others.filter(pk__lte=oldest).delete()
