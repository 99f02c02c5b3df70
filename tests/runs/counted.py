"""The expected figures, counted from calls, cards, passes and events by brute force."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.db.models import Model
from django.db.models.functions import Now

from agents.insight import counting
from agents.insight.models import (
    BUCKETS,
    EmployeeFigures,
    EmployeeUse,
    FiguresHead,
    ToolFigures,
    TotalFigures,
    TotalUse,
)
from agents.runs.models import (
    Approval,
    ApprovalKind,
    ApprovalStatus,
    CallStatus,
    Event,
    EventType,
    Pass,
    ToolCall,
)
from tests.workshop import eventually


def count_all(most: int = counting.AT_ONCE) -> None:
    """Count until everything that is already committed is counted; other users of the server may
    delay this."""
    newest = Event.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    last_pass = Pass.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    make_counting_due()

    def is_counted() -> bool:
        counting.count_batch(most)
        head = FiguresHead.objects.get()
        return head.event_id >= newest and head.pass_id >= last_pass

    eventually(is_counted)


def make_counting_due() -> None:
    """Make the next count due."""
    FiguresHead.objects.get_or_create(
        pk=FiguresHead.ONLY, defaults={"looked_at": Now(), "due_at": Now()}
    )


def read_figures(model: type[Model], *keys: str) -> dict[tuple[Any, ...], dict[str, int]]:
    """Return the numbers in this model's rows by key, except for zeros."""
    skipped = {"id", "organization", "employee", "day", "tool", "currency", "slowest_ms"}
    found: dict[tuple[Any, ...], dict[str, int]] = {}
    for row in model._default_manager.values():
        key = tuple(row[each] for each in keys)
        names = [field.name for field in model._meta.concrete_fields if field.name not in skipped]
        numbers = {name: row[name] for name in names if isinstance(row[name], int) and row[name]}
        assert key not in found
        found[key] = numbers
    return {key: numbers for key, numbers in found.items() if numbers}


def count_calls() -> dict[tuple[int, str], Counter[str]]:
    """Return the figures by organization and tool, counted from the calls and cards themselves."""
    found: dict[tuple[int, str], Counter[str]] = {}
    ended = ToolCall.objects.filter(status__in=(CallStatus.SUCCEEDED, CallStatus.FAILED))
    result_events = {
        (event.run_id, event.seq): event
        for event in Event.objects.filter(type=EventType.TOOL_RESULT)
    }
    for one in ended:
        sums = found.setdefault((one.organization_id, one.tool), Counter())
        sums[str(one.status)] += 1
        if (one.run_id, one.finished_seq) in result_events and one.duration_ms is not None:
            duration = one.duration_ms
            sums[
                next((name for name, longest in BUCKETS.items() if duration <= longest), "longer")
            ] += 1
            sums["duration_ms"] += duration
    for card in Approval.objects.filter(kind=ApprovalKind.APPROVAL).select_related("tool_call"):
        sums = found.setdefault((card.organization_id, card.tool_call.tool), Counter())
        sums["asked"] += 1
        sums["approved"] += card.start_after is not None
        sums["denied"] += card.status == ApprovalStatus.DENIED
    return found


def assert_figures_are_true() -> None:
    """Check that every table of figures agrees with the rows that it counts."""
    truth = count_calls()
    by_tool = read_figures(ToolFigures, "organization_id", "tool")
    assert by_tool == {key: dict(+sums) for key, sums in truth.items() if +sums}
    of_employees: dict[str, Counter[str]] = {}
    for (_, tool), numbers in read_figures(EmployeeFigures, "employee_id", "tool").items():
        of_employees.setdefault(tool, Counter()).update(numbers)
    altogether: dict[str, Counter[str]] = {}
    for (_, tool), sums in truth.items():
        altogether.setdefault(tool, Counter()).update(sums)
    assert of_employees == {tool: +sums for tool, sums in altogether.items()}
    totals = {tool: Counter(sums) for (tool,), sums in read_figures(TotalFigures, "tool").items()}
    assert totals == of_employees
    assert_use_is_true()


def assert_use_is_true() -> None:
    truth: dict[int, Counter[str]] = {}
    for one in Pass.objects.select_related("run"):
        used = {
            name: getattr(one, name)
            for name in ("input_tokens", "output_tokens", "cost_micros", "duration_ms")
        }
        truth.setdefault(one.run.employee_id, Counter()).update(passes=1, **used)
    for event in Event.objects.filter(type=EventType.RUN_TITLED).select_related("run"):
        used = {name: event.payload.get(name, 0) for name in ("input_tokens", "output_tokens")}
        used["cost_micros"] = round((event.payload.get("cost") or 0) * 1_000_000)
        truth.setdefault(event.run.employee_id, Counter()).update(used)
    for event in Event.objects.filter(type=EventType.RUN_FINISHED).select_related("run"):
        truth.setdefault(event.run.employee_id, Counter())[f"runs_{event.payload['status']}"] += 1
    assert read_figures(EmployeeUse, "employee_id") == {
        (key,): dict(+sums) for key, sums in truth.items()
    }
    whole: Counter[str] = sum(truth.values(), Counter())
    assert read_figures(TotalUse, "currency") == ({("USD",): dict(whole)} if whole else {})
