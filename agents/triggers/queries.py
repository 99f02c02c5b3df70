"""The compiled queries of a message that comes to a trigger: the trigger, its member, and equal messages before."""

from datetime import datetime
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db.models.functions import Now

from agents.accounts.models import Membership, Organization
from agents.employees.models import Employee
from agents.platform.queries.compiled import CompiledQuery, ModelColumns
from agents.triggers.models import MessageStatus, ReceivedMessage, Trigger

_NAME = ("username",)


class TriggerWithPeople(NamedTuple):
    """An active trigger with its organization, its employee and the people behind it; absent ones have no id."""

    trigger: Trigger
    organization: Organization
    employee: Employee
    maker: User
    author: User
    keeper: User


ACTIVE_TRIGGER = CompiledQuery(
    TriggerWithPeople,
    lambda public_id: Trigger.objects.filter(public_id=public_id, is_active=True).order_by(),
    placeholders=("the id in a trigger's address",),
    trigger=ModelColumns(Trigger),
    organization=ModelColumns(Organization, "organization__"),
    employee=ModelColumns(Employee, "employee__"),
    maker=ModelColumns(User, "made_by__", _NAME),
    author=ModelColumns(User, "task_by__", _NAME),
    keeper=ModelColumns(User, "secret_by__", _NAME),
)


class MemberWithUser(NamedTuple):
    """A member whose account is active."""

    member: Membership
    user: User


ACTIVE_MEMBER = CompiledQuery(
    MemberWithUser,
    lambda organization_id, user_id: Membership.objects.filter(
        organization_id=organization_id, user_id=user_id, user__is_active=True
    ).order_by(),
    member=ModelColumns(Membership),
    user=ModelColumns(User, "user__"),
)


class EarlierMessage(NamedTuple):
    """A message with the same key that started a run, and the database's time."""

    received_at: datetime
    run_id: int | None
    now: datetime


EARLIER_MESSAGES = CompiledQuery(
    EarlierMessage,
    lambda trigger_id, key: ReceivedMessage.objects.filter(
        trigger_id=trigger_id, key=key, status=MessageStatus.STARTED
    ).order_by("-pk"),
    placeholders=(31_011, "the key of a message"),
    now=Now(),
)
