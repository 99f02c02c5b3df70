"""The whole installation in numbers for Prometheus, from the database: the same whichever process is asked.

Counters of one process would start anew with it, and each process would tell others. Nothing here names an
organisation, a person, an employee or a task.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from itertools import accumulate
from platform import python_version

import redis
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.db.models import Count, Max, Min, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Now
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from agents.accounts.models import Organization
from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.employees.budgets import MICROS
from agents.insight.models import BUCKETS, FiguresHead, TotalFigures, TotalUse
from agents.platform.liveness import SWEEPER, WORKER, living
from agents.runs.models import PARKED, Event, Run, RunStatus

KEPT_S = 2.0
"""So long an answer is given again, so that the database is asked no oftener, however many ask."""
_OPEN = (RunStatus.QUEUED, RunStatus.RUNNING, *PARKED)
_FINISHED = {"succeeded": "runs_succeeded", "failed": "runs_failed", "cancelled": "runs_cancelled"}


class _Kept:
    """The newest answer of this process; who asks meanwhile waits for it instead of asking the database too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text, self._until = b"", 0.0

    def text(self) -> bytes:
        with self._lock:
            if time.monotonic() >= self._until:
                self._text = exposition()
                self._until = time.monotonic() + KEPT_S
            return self._text

    def forget(self) -> None:
        self._until = 0.0


kept = _Kept()


def exposition() -> bytes:
    """All metrics, in Prometheus' text format; without a database those that need none."""
    registry = CollectorRegistry()
    registry.register(_Installation())
    return generate_latest(registry)


class _Installation(Collector):
    """Everything that is told; a registry asks for it."""

    def describe(self) -> list[Metric]:
        return []  # nothing is asked of the database before somebody wants to know

    def collect(self) -> Iterator[Metric]:
        yield _build()
        yield from _processes()
        try:
            found = [*_now(), *_of_tools(), *_of_models()]
        except (OperationalError, InterfaceError):
            connection.close()
            yield _gauge("gadget_database_up", "Whether the database answers.", 0)
            return
        yield _gauge("gadget_database_up", "Whether the database answers.", 1)
        yield from found


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _build() -> Metric:
    labels = {
        "orchestrator": settings.GADGET_CONFIG.tools.orchestrator_id,
        "version": settings.GADGET_VERSION,
        "python": python_version(),
        "database": connection.vendor,
    }
    build = GaugeMetricFamily("gadget_build_info", "What runs here; always 1.", labels=list(labels))
    build.add_metric(list(labels.values()), 1)
    return build


def _processes() -> Iterator[Metric]:
    alive = GaugeMetricFamily("gadget_processes", "Workers and sweepers that give signs of life.", labels=["part"])
    try:
        for part in (WORKER, SWEEPER):
            alive.add_metric([part], len(living(part)))
    except redis.RedisError:
        yield _gauge("gadget_redis_up", "Whether Redis answers.", 0)
        return
    yield _gauge("gadget_redis_up", "Whether Redis answers.", 1)
    yield alive


def _now() -> Iterator[Metric]:
    """What is so at the moment."""
    organizations: list[tuple[int, datetime]] = list(Organization.objects.order_by().values_list("pk", Now()))
    ids, now = [pk for pk, _ in organizations], max((at for _, at in organizations), default=None)
    counted = Run.objects.filter(organization_id__in=ids, status__in=_OPEN).order_by().values_list("status")
    many = dict(counted.annotate(many=Count("pk")))
    runs = GaugeMetricFamily("gadget_runs", "Runs that have not ended.", labels=["status"])
    for status in _OPEN:
        runs.add_metric([str(status)], many.get(str(status), 0))
    yield runs
    yield from _queue(now)
    yield from _leases()
    yield from _cards(now)
    yield from _counting(now)


def _queue(now: datetime | None) -> Iterator[Metric]:
    """Runs that a worker could take; what waits for its time, or was stopped, is not due."""
    due = Q(next_wake_at=None) | Q(next_wake_at__lte=Now())
    newest = Event.objects.filter(run_id=OuterRef("pk")).order_by("-seq").values("created_at")[:1]
    runs = Run.objects.filter(due, status=RunStatus.QUEUED, stopped_because="").order_by()
    found = runs.annotate(since=Coalesce("next_wake_at", Subquery(newest), "created_at")).aggregate(
        many=Count("pk"), oldest=Min("since")
    )
    yield _gauge("gadget_queue_runs", "Runs that are due and that no worker has taken.", found["many"])
    yield _gauge("gadget_queue_oldest_seconds", "How long the oldest of them is due.", _age(found["oldest"], now))


def _leases() -> Iterator[Metric]:
    lost = Count("pk", filter=Q(lease_expires_at__lt=Now()))
    found = Run.objects.filter(status=RunStatus.RUNNING).order_by().aggregate(many=Count("pk"), lost=lost)
    yield _gauge("gadget_leases", "Runs that a worker drives.", found["many"])
    yield _gauge("gadget_leases_expired", "Those whose worker gave no sign in time.", found["lost"])


def _cards(now: datetime | None) -> Iterator[Metric]:
    waiting = Approval.objects.filter(status=ApprovalStatus.PENDING).order_by().values_list("kind")
    found = {kind: (many, oldest) for kind, many, oldest in waiting.annotate(Count("pk"), Min("requested_at"))}
    cards = GaugeMetricFamily("gadget_open_cards", "Cards that wait for a person.", labels=["kind"])
    oldest = GaugeMetricFamily("gadget_open_cards_oldest_seconds", "How long the oldest waits.", labels=["kind"])
    for kind in ApprovalKind.values:
        many, since = found.get(kind, (0, None))
        cards.add_metric([kind], many)
        oldest.add_metric([kind], _age(since, now))
    yield cards
    yield oldest


def _counting(now: datetime | None) -> Iterator[Metric]:
    newest = Event.objects.aggregate(newest=Max("pk"))["newest"] or 0
    head = FiguresHead.objects.filter(pk=FiguresHead.ONLY).first()
    if head is not None:
        yield _gauge("gadget_sweep_age_seconds", "Since a sweeper came by; about 10 s.", _age(head.looked_at, now))
    left = max(0, newest - (head.event_id if head else 0))
    yield _gauge("gadget_uncounted_events", "Events that the counters do not hold yet, at most.", left)


def _age(since: datetime | None, now: datetime | None) -> float:
    return max(0.0, (now - since).total_seconds()) if since and now else 0.0


def _of_tools() -> Iterator[Metric]:
    """What was counted of calls, of all organisations together."""
    calls = CounterMetricFamily("gadget_tool_calls", "Calls that ended.", labels=["tool", "outcome"])
    cards = CounterMetricFamily("gadget_tool_cards", "Cards asked, approved, denied.", labels=["tool", "what"])
    cost = CounterMetricFamily("gadget_tool_cost", "What results said they cost.", labels=["tool", "currency"])
    took = HistogramMetricFamily("gadget_tool_call_duration_seconds", "Calls that were timed.", labels=["tool"])
    by_tool: defaultdict[str, list[TotalFigures]] = defaultdict(list)
    for row in TotalFigures.objects.all():
        by_tool[row.tool].append(row)
        if row.cost_micros:
            cost.add_metric([row.tool, row.currency], row.cost_micros / MICROS)
    for tool, rows in by_tool.items():
        for outcome in ("succeeded", "failed"):
            calls.add_metric([tool, outcome], sum(getattr(row, outcome) for row in rows))
        for what in ("asked", "approved", "denied"):
            cards.add_metric([tool, what], sum(getattr(row, what) for row in rows))
        upto = accumulate(sum(getattr(row, column) for row in rows) for column in (*BUCKETS, "longer"))
        ends = [*(f"{longest / 1000:g}" for longest in BUCKETS.values()), "+Inf"]
        seconds = sum(row.duration_ms for row in rows) / 1000
        took.add_metric([tool], list(zip(ends, upto, strict=True)), seconds)
    yield from (calls, cards, cost, took)


def _of_models() -> Iterator[Metric]:
    """What was counted of passes and runs."""
    rows = list(TotalUse.objects.all())
    runs = CounterMetricFamily("gadget_runs_finished", "Ends of runs.", labels=["status"])
    for status, column in _FINISHED.items():
        runs.add_metric([status], sum(getattr(row, column) for row in rows))
    tokens = CounterMetricFamily("gadget_tokens", "What models read and wrote.", labels=["direction"])
    tokens.add_metric(["input"], sum(row.input_tokens for row in rows))
    tokens.add_metric(["output"], sum(row.output_tokens for row in rows))
    cost = CounterMetricFamily("gadget_model_cost", "What models cost, where a price is known.", labels=["currency"])
    for row in rows:
        cost.add_metric([row.currency], row.cost_micros / MICROS)
    seconds = sum(row.duration_ms for row in rows) / 1000
    yield CounterMetricFamily("gadget_passes", "Answers of models.", value=sum(row.passes for row in rows))
    yield CounterMetricFamily("gadget_model_seconds", "How long models took to answer.", value=seconds)
    yield from (runs, tokens, cost)
