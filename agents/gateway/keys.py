"""Agent keys. A member creates a key for an employee; it works until it expires, it is revoked, or
the member loses the role.

A key is not an API token: only the operations of the gateway accept it, so it can never decide,
vote, answer or configure.
"""

import secrets
from contextlib import suppress
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from agents.accounts import audit
from agents.accounts.membership import USE_RECORDED_EVERY, hash_secret
from agents.accounts.models import Membership, Role
from agents.employees.models import Employee
from agents.gateway.models import AgentKey, AgentRun
from agents.gateway.queries import KEY_OWNER
from agents.platform.log_context import log_for_organization
from agents.platform.rate_limits import count_or_wait
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound, TooManyRequests
from agents.runs.engine.ending import cancel_unneeded
from agents.runs.models import ENDED, Run

KEY_PREFIX = "gadget_agent_"
MAX_REQUESTS_PER_MINUTE = 600
"""The maximum number of requests per minute with one key in one process."""
MAX_KEYS = 50
"""The maximum number of keys of one member that work at the same time."""
CANCELLED_AT_ONCE = 200
"""The maximum number of runs of ended keys that are cancelled at a time; the sweeper continues with
the remaining runs."""
MAX_DAYS = 366
MAX_NAME = 80


def issue_key(member: Membership, employee_id: int, name: str, days: int) -> tuple[AgentKey, str]:
    """Create a key for this member; return it with its secret, which is not stored.

    Args:
        days: the key's lifetime in days, 1 to 366.

    Raises:
        Forbidden, NotFound, Invalid
        Conflict: the employee is not active, or the member has too many keys.
    """
    member.require(Role.OPERATOR, "create agent keys")
    label = " ".join(name.split())
    if not label or len(label) > MAX_NAME or not label.isprintable():
        raise Invalid("name", f"name must have 1 to {MAX_NAME} visible characters")
    if not 1 <= days <= MAX_DAYS:
        raise Invalid("days", f"days is {days}, but must be 1 to {MAX_DAYS}")
    employee = Employee.objects.filter(
        organization_id=member.organization_id, pk=employee_id
    ).first()
    if employee is None:
        raise NotFound(f"there is no employee {employee_id}")
    if not employee.is_active:
        raise Conflict(f"{employee.name} is not active")
    secret = KEY_PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        Membership.objects.select_for_update(no_key=True).get(pk=member.pk)
        if AgentKey.usable().filter(membership=member).count() >= MAX_KEYS:
            raise Conflict(f"you have {MAX_KEYS} keys already; revoke one first")
        key = AgentKey.objects.create(
            membership=member,
            employee=employee,
            name=label,
            hash=hash_secret(secret),
            ending=secret[-4:],
            expires_at=timezone.now() + timedelta(days=days),
        )
        _audit(member, "agent_key_created", key, employee=employee.name, days=days)
    return key, secret


def lock_key(key: AgentKey) -> None:
    """Lock the row of a key in this transaction, so that requests with it proceed one at a time.

    Raises:
        Conflict: the key was revoked or has expired since the request arrived.
    """
    working = AgentKey.usable().select_for_update(no_key=True, of=("self",)).order_by()
    if working.filter(pk=key.pk).first() is None:
        raise Conflict("this key no longer works")


def authenticate_key(secret: str) -> AgentKey | None:
    """Return the key with its member, employee and organization, and record that it was used; None
    if the key does not work."""
    if not secret.startswith(KEY_PREFIX):
        return None
    owner = KEY_OWNER.fetch_one(hash_secret(secret))
    if owner is None:
        return None
    key = owner.key
    key.membership, key.employee = owner.member, owner.employee
    key.membership.user = owner.user
    key.membership.organization = key.employee.organization = owner.organization
    log_for_organization(owner.organization.pk)
    if key.last_used_at is None or key.last_used_at < timezone.now() - USE_RECORDED_EVERY:
        AgentKey.objects.filter(pk=key.pk).update(last_used_at=Now())
    return key


def describe_refused_key(secret: str) -> str:
    """Return a sentence that explains to the sender of this secret why it does not work as an agent
    key."""
    if not secret:
        return "An agent key is needed."
    if not secret.startswith(KEY_PREFIX):
        return f"This is not an agent key: agent keys begin with {KEY_PREFIX}."
    key = AgentKey.objects.filter(hash=hash_secret(secret)).first()
    if key is None:
        return "There is no such agent key."
    if key.revoked_at is not None:
        return "This agent key was revoked."
    if key.expires_at <= timezone.now():
        return f"This agent key expired on {key.expires_at:%Y-%m-%d}."
    return "The owner of this agent key cannot start runs."


def refuse_flood(key: AgentKey) -> None:
    """Count a request of the key in this process; refuse the request if the key has sent too many.

    Raises:
        TooManyRequests
    """
    if wait_s := count_or_wait(f"agent-key:{key.pk}", MAX_REQUESTS_PER_MINUTE):
        raise TooManyRequests(
            f"more than {MAX_REQUESTS_PER_MINUTE} requests in a minute", retry_after=wait_s
        )


def list_keys(member: Membership) -> QuerySet[AgentKey]:
    """Return the member's own keys, newest first; for an admin, return all keys of the
    organization."""
    ours = AgentKey.objects.filter(employee__organization_id=member.organization_id)
    visible = ours if member.may(Role.ADMIN) else ours.filter(membership=member)
    return visible.select_related("membership__user", "employee")


def revoke_key(member: Membership, key_id: int, keeps_open: bool = False) -> AgentKey:
    """Revoke a key immediately; its open calls and asks are cancelled, unless an admin keeps them.

    Raises:
        NotFound
        Forbidden: only an admin may keep open calls and asks.
        Conflict: the key is already revoked.
    """
    key = list_keys(member).filter(pk=key_id).first()
    if key is None:
        raise NotFound(f"there is no agent key {key_id}")
    if keeps_open and not member.may(Role.ADMIN):
        raise Forbidden("only an admin can keep the open calls and asks of a key")
    by = member.user.get_username()
    with transaction.atomic():
        working = AgentKey.objects.filter(pk=key.pk, revoked_at=None)
        if not working.update(revoked_at=Now(), revoked_by=by, keeps_open=keeps_open):
            raise Conflict("this key is already revoked")
        _audit(member, "agent_key_revoked", key, keeps_open=keeps_open)
    cancel_runs_of_ended_keys(key=key)
    key.refresh_from_db()
    return key


def cancel_runs_of_ended_keys(**which: object) -> int:
    """Cancel the open runs of keys that no longer work, unless an admin keeps them; return their
    number.

    Args:
        which: filters on `AgentRun`; if there are none, the runs of all keys are checked.
    """
    open_runs = (
        AgentRun.without_key().exclude(run__status__in=ENDED).filter(run__cancel_requested_at=None)
    )
    done = 0
    for run_id in open_runs.filter(**which).values_list("run_id", flat=True)[:CANCELLED_AT_ONCE]:
        with suppress(Run.DoesNotExist):
            done += cancel_unneeded(run_id, "The agent's key no longer works.", wait=False)
    return done


def _audit(member: Membership, action: str, key: AgentKey, **details: object) -> None:
    audit.record(member, action, f"agent_key:{key.pk}", name=key.name, **details)
