"""Create, edit, switch and remove triggers for people, and rotate their secrets."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.accounts import audit
from agents.accounts.models import Membership, Role
from agents.employees.models import Employee
from agents.platform.refusals import Conflict, Invalid, NotFound
from agents.runs.actions import check_text
from agents.triggers.models import PARTS, Scheme, Trigger
from agents.triggers.schemes import WrongSecret, check_secret, make_secret
from agents.triggers.templates import check_template
from tools.contract import storable_json
from tools.toolbox.conditions import Condition, Rule

MAX_TRIGGERS = 100
MAX_FILTERS = 10
FILTER_RULES = (Rule.EQUALS, Rule.ONE_OF, Rule.PATTERN, Rule.PREFIX, Rule.MINIMUM, Rule.MAXIMUM)
"""The rules that filters can use."""
MAX_HOURS = 24 * 7
MAX_QUEUED = 1_000


@dataclass(frozen=True)
class TriggerTerms:
    """The terms of a trigger, entered by a person.

    Attributes:
        filters: conditions as JSON, with rules of FILTER_RULES.
        secret: a secret from the other system; if empty, a new trigger gets a generated secret.
    """

    name: str
    employee_id: int
    scheme: str
    task: str
    header: str = ""
    filters: Sequence[dict[str, Any]] = ()
    repeat_hours: int = 24
    max_queued: int = 100
    secret: str = ""


def list_triggers(member: Membership) -> QuerySet[Trigger]:
    """Return the organization's triggers, newest first."""
    rows = Trigger.objects.filter(organization_id=member.organization_id, removed_at=None)
    return rows.select_related("employee", "created_by")


def find_trigger(member: Membership, trigger_id: int) -> Trigger:
    """Find a trigger of the member's organization.

    Raises:
        NotFound
    """
    trigger = list_triggers(member).filter(pk=trigger_id).first()
    if trigger is None:
        raise NotFound(f"there is no trigger {trigger_id}")
    return trigger


def make_trigger(member: Membership, terms: TriggerTerms) -> tuple[Trigger, str]:
    """Create a trigger on behalf of this member; return it with its secret, which is not shown
    again.

    Raises:
        Forbidden, NotFound, Invalid
        Conflict: the organization has too many triggers.
    """
    member.require(Role.OPERATOR, "create a trigger")
    secret = terms.secret or make_secret(terms.scheme)
    with transaction.atomic():
        if list_triggers(member).count() >= MAX_TRIGGERS:
            raise Conflict(f"limit reached: {MAX_TRIGGERS} triggers; remove one first")
        trigger = Trigger(
            organization_id=member.organization_id,
            public_id=secrets.token_urlsafe(18),
            created_by=member.user,
            made_by=member.user,
            task_by=member.user,
            secret_by=member.user,
        )
        _write(member, trigger, terms, secret)
        trigger.save(force_insert=True)
        _audit(member, "trigger_created", trigger, employee=terms.employee_id, scheme=terms.scheme)
    return trigger, secret


def edit_trigger(member: Membership, trigger_id: int, terms: TriggerTerms) -> Trigger:
    """Change the terms of a trigger, which then works on behalf of this member; its address stays
    the same.

    Raises:
        Forbidden, NotFound, Invalid
    """
    member.require(Role.OPERATOR, "change a trigger")
    with transaction.atomic():
        trigger = _lock(member, trigger_id)
        if terms.secret:
            trigger.secret_by = member.user
        if check_text("task", terms.task) != trigger.task:
            trigger.task_by = member.user
        _write(member, trigger, terms, terms.secret or trigger.secret)
        trigger.created_by = member.user
        trigger.save()
        _audit(member, "trigger_changed", trigger, employee=terms.employee_id, scheme=terms.scheme)
    return trigger


def switch_trigger(member: Membership, trigger_id: int, *, is_active: bool) -> Trigger:
    """Switch a trigger off or on. A trigger that was switched on works on behalf of this member."""
    member.require(Role.OPERATOR, "switch a trigger")
    with transaction.atomic():
        trigger = _lock(member, trigger_id)
        trigger.is_active = is_active
        if is_active:
            trigger.part_authors = _get_part_authors(trigger)
            trigger.created_by = member.user
        trigger.save(update_fields=["is_active", "created_by", "part_authors"])
        _audit(member, "trigger_switched_on" if is_active else "trigger_switched_off", trigger)
    return trigger


def renew_secret(member: Membership, trigger_id: int) -> tuple[Trigger, str]:
    """Give a trigger a new secret, and return both; the old secret stops working immediately."""
    member.require(Role.OPERATOR, "change a trigger")
    with transaction.atomic():
        trigger = _lock(member, trigger_id)
        trigger.secret = secret = make_secret(trigger.scheme)
        trigger.secret_by = member.user
        trigger.save(update_fields=["secret", "secret_by"])
        _audit(member, "trigger_secret_changed", trigger)
    return trigger, secret


def remove_trigger(member: Membership, trigger_id: int) -> None:
    """Remove a trigger; its runs stay visible, and its messages are hidden but kept."""
    member.require(Role.OPERATOR, "remove a trigger")
    with transaction.atomic():
        trigger = _lock(member, trigger_id)
        _audit(member, "trigger_removed", trigger)
        trigger.is_active, trigger.removed_at = False, Now()
        trigger.save(update_fields=["is_active", "removed_at"])


def _lock(member: Membership, trigger_id: int) -> Trigger:
    rows = Trigger.objects.select_for_update().filter(
        organization_id=member.organization_id, pk=trigger_id, removed_at=None
    )
    trigger = rows.first()
    if trigger is None:
        raise NotFound(f"there is no trigger {trigger_id}")
    return trigger


def _write(member: Membership, trigger: Trigger, terms: TriggerTerms, secret: str) -> None:
    """Check the terms and set them on the trigger, which the caller saves.

    Raises:
        NotFound, Invalid
    """
    authors, before = _get_part_authors(trigger), _read_parts(trigger)
    name = " ".join(terms.name.split())
    if not name or len(name) > 80 or not name.isprintable():
        raise Invalid("name", "name must have 1 to 80 visible characters")
    if terms.scheme not in Scheme.values:
        raise Invalid("scheme", "choose who sends the messages")
    if not 1 <= terms.repeat_hours <= MAX_HOURS:
        raise Invalid("repeat_hours", f"enter 1 to {MAX_HOURS} hours for equal bodies")
    if not 1 <= terms.max_queued <= MAX_QUEUED:
        raise Invalid("max_queued", f"allow 1 to {MAX_QUEUED:,} waiting runs")
    employee = Employee.objects.filter(
        organization_id=member.organization_id, pk=terms.employee_id
    ).first()
    if employee is None:
        raise NotFound(f"there is no employee {terms.employee_id}")
    trigger.task = check_text("task", terms.task)
    check_template(trigger.task)
    trigger.header = _clean_header(terms)
    trigger.filters = _check_filters(terms.filters)
    try:
        check_secret(terms.scheme, secret)
    except WrongSecret as error:
        raise Invalid("secret", str(error)) from error
    trigger.name, trigger.employee, trigger.scheme, trigger.secret = (
        name,
        employee,
        terms.scheme,
        secret,
    )
    trigger.repeat_hours, trigger.max_queued = terms.repeat_hours, terms.max_queued
    after = _read_parts(trigger)
    changed = {part: member.user_id for part in PARTS if after[part] != before[part]}
    trigger.part_authors = authors | changed


def _get_part_authors(trigger: Trigger) -> dict[str, int | None]:
    """Return the id of the person who last changed each part, or the owner's id if an older version
    created the trigger."""
    return trigger.part_authors or dict.fromkeys(PARTS, trigger.created_by_id)


def _read_parts(trigger: Trigger) -> dict[str, list[Any]]:
    return {part: [getattr(trigger, name) for name in names] for part, names in PARTS.items()}


def _clean_header(terms: TriggerTerms) -> str:
    if terms.scheme != Scheme.HMAC:
        return ""
    header = terms.header.strip()
    if len(header) > 80 or not header.replace("-", "").isalnum() or not header.isascii():
        raise Invalid(
            "header", "enter the signature header, such as X-Signature, in letters, digits and -"
        )
    return header


def _check_filters(filters: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(filters) > MAX_FILTERS:
        raise Invalid("filters", f"a trigger can have at most {MAX_FILTERS} filters")
    found = []
    for number, stored in enumerate(filters, start=1):
        try:
            storable_json(stored)
            condition = Condition.from_json({"otherwise": "forbid", **stored})
        except (ValueError, RecursionError) as error:
            raise Invalid("filters", f"filter {number}: {error}") from error
        if condition.rule not in FILTER_RULES:
            raise Invalid(
                "filters", f"filter {number}: {condition.rule} cannot be used for messages"
            )
        found.append(condition.as_json())
    return found


def _audit(member: Membership, action: str, trigger: Trigger, **details: object) -> None:
    audit.record(member, action, f"trigger:{trigger.pk}", name=trigger.name, **details)
