"""The compiled query that finds the trigger of a message."""

from typing import NamedTuple

from django.contrib.auth.models import User

from agents.accounts.models import Organization
from agents.employees.models import Employee
from agents.platform.queries.compiled import CompiledQuery, ModelColumns
from agents.triggers.models import Trigger

_NAME = ("username",)


class TriggerWithPeople(NamedTuple):
    """An active trigger with its organization, its employee and the people behind it. An employee
    or a person that is missing has no id."""

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
