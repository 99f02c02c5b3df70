"""Fill every table of the database, and use every foreign key at least once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from itertools import count
from typing import Any
from uuid import uuid4

from django.apps import apps
from django.db import models
from django.utils import timezone

from agents.accounts.models import Membership
from agents.runs.models import CallStatus
from tests.standing_grants.granting import die_after_responses, equals, grant
from tests.workshop import Workshop, asking, call, die_while_executing
from tests.workshop.colleagues import delegate, drive_all, hire, may_ask, may_delegate
from tools.office.files.changes import write_file

ODD = "ümlaut \\ \t \n \\N 'quoted' \u2028 😀 {\"a\": 1.50}"
Model = type[models.Model]
_numbers = count(1)


def fill_every_table(workshop: Workshop) -> None:
    """Let employees work until every kind of call is open, then fill the tables and keys that are
    still unused.

    Raises:
        AssertionError: a table or a foreign key stayed unused.
    """
    _work(workshop)
    for model in _list_models():
        if not model._base_manager.exists():
            _create_row(model)
    for model in _list_models():
        for field in _list_foreign_keys(model):
            if not model._base_manager.exclude(**{field.name: None}).exists():
                _use_key(model, field)
    assert not (unused := list_unused()), (
        f"the filler left unused: {unused}; add values to _SPECIAL"
    )


def list_unused() -> list[str]:
    """List the tables without a row, and the foreign keys that no row uses."""
    unused = [model._meta.label for model in _list_models() if not model._base_manager.exists()]
    return unused + [
        f"{model._meta.label}.{field.name}"
        for model in _list_models()
        for field in _list_foreign_keys(model)
        if not model._base_manager.exclude(**{field.name: None}).exists()
    ]


def _work(workshop: Workshop) -> None:
    """Leave open a delegated task, a call under a standing grant that has not started, an approved
    call, and a running read."""
    may_ask(workshop.employee)
    may_delegate(
        workshop.employee, hire(workshop, "Kim", asking(call("probe.effect", name="child")))
    )
    workshop.play(asking(delegate(), call("employee.askHuman", question=ODD)))
    drive_all(workshop, workshop.submit())
    grant(workshop, "probe.effect", equals("name", "granted"))
    grant(workshop, "probe.effect", equals("name", "revoked"))
    die_after_responses(workshop, call("probe.effect", name="granted"))
    workshop.play(asking(call("probe.effect", name="approved")))
    workshop.approve(workshop.card(workshop.work()), grace_s=60)
    workshop.play(asking(call("probe.sleep", ms=0)))
    workshop.work()
    die_while_executing(workshop.submit())
    workshop.record(name=ODD, notes=ODD)
    write_file(workshop.organization.pk, ("reports", "a ü.txt"), [ODD.encode()], lambda _: None)


def _list_models() -> list[Model]:
    return [model for model in apps.get_models(include_auto_created=True) if model._meta.managed]


def _list_foreign_keys(model: Model) -> list[models.ForeignKey[Any, Any]]:
    return [field for field in model._meta.concrete_fields if isinstance(field, models.ForeignKey)]


def _create_row(model: Model) -> models.Model:
    """Create a row with all foreign keys whose tables have a row already."""
    given = _make_special_values(model)
    for field in model._meta.concrete_fields:
        if field.name in given or field.attname in given or isinstance(field, models.AutoField):
            continue
        if isinstance(field, models.ForeignKey):
            given[field.name] = _find_target(model, field)
        elif not field.null and not field.has_default() and field.db_default is models.NOT_PROVIDED:
            given[field.name] = _make_value(field)
    return model._base_manager.create(**given)


def _find_target(model: Model, field: models.ForeignKey[Any, Any]) -> models.Model | None:
    target = field.related_model
    rows = target._base_manager.order_by("pk")
    if field.unique:
        rows = rows.exclude(
            pk__in=model._base_manager.exclude(**{field.name: None}).values(field.attname)
        )
    found = rows.first()
    if found is None and not field.null:
        return _create_row(target)
    return found


def _use_key(model: Model, field: models.ForeignKey[Any, Any]) -> None:
    """Set this key in the newest row that may have it, with the other values that constraints
    require."""
    rows = model._base_manager.filter(**_ENDED.get(model._meta.label, {}))
    row = rows.order_by("-pk").first()
    assert row is not None
    values = {
        field.name: _find_target(model, field),
        **_BESIDE.get(f"{model._meta.label}.{field.name}", dict)(),
    }
    model._base_manager.filter(pk=row.pk).update(**values)


def _make_value(field: models.Field[Any, Any]) -> Any:
    number = next(_numbers)
    if field.choices:
        return next(iter(field.choices))[0]
    if field.blank and field.empty_strings_allowed:
        return ""
    if isinstance(field, models.CharField | models.TextField):
        text = f"{field.name}-{number}"
        return text[: field.max_length] if field.max_length else text + ODD
    for kind, value in _VALUES.items():
        if isinstance(field, kind):
            return value() if callable(value) else value
    raise AssertionError(f"the filler has no value for {field}: add its type to _VALUES")


_VALUES: Mapping[Any, Any] = {
    models.BooleanField: True,
    models.DateTimeField: timezone.now,
    models.DateField: lambda: timezone.now().date(),
    models.DecimalField: Decimal("1.5000"),
    models.FloatField: 1.5,
    models.IntegerField: 1,
    models.JSONField: dict,
    models.BinaryField: b"\x00\xff\\x",
    models.UUIDField: uuid4,
    models.GenericIPAddressField: "127.0.0.1",
    models.DurationField: timedelta(hours=1),
}


def _make_special_values(model: Model) -> dict[str, Any]:
    """Return the values that the constraints of this table require."""
    soon = timezone.now() + timedelta(days=1)
    special: dict[str, dict[str, Any]] = {
        "platform.Installation": {"pk": 1},
        "platform.OldestSchema": {"pk": 1},
        "notices.PushKey": {"pk": 1},
        "approval_rules.Deputy": {
            "ends_at": soon,
            "deputy": Membership.objects.order_by("pk").last(),
        },
        "approval_rules.ApprovalRule": {"escalate_hours": 1},
        "schedules.Schedule": {"next_at": soon, "cron": "0 9 * * *", "time_zone": "Europe/Berlin"},
        "sessions.Session": {"expire_date": soon},
        "connections.SourceTool": {"inferred_level": "read"},
    }
    return special.get(model._meta.label, {})


_ENDED: Mapping[str, dict[str, str]] = {"runs.ToolCall": {"status": CallStatus.SUCCEEDED}}
"""The values of ended rows, by table: an ended row may have any key, because the engine does not
use it."""
_BESIDE: Mapping[str, Any] = {
    "standing_grants.StandingGrant.revoked_by": lambda: {"revoked_at": timezone.now()},
}
