"""Prometheus metrics of the whole installation, from the database, so that every process reports
the same numbers.

Counters in memory would restart with their process, and differ between processes. No metric names
an organization, a person, an employee or a task.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from itertools import accumulate
from platform import python_version

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.db.models import Count, Max, Min, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Now
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from agents.accounts.models import Organization
from agents.deliveries.models import DeliveryStatus
from agents.insight.counting import RUN_ENDS
from agents.insight.models import BUCKETS, FiguresHead, TotalFigures, TotalUse
from agents.notices.models import Delivery, Notice
from agents.platform.database_outages import UNREACHABLE, describe_outage
from agents.platform.liveness import REDIS, SWEEPER, WORKER, Presence, load_presence
from agents.platform.schema_version import NotMigratedError, check_migrated
from agents.platform.writability import BackgroundCheck
from agents.readers.reading import find_oldest_unread
from agents.runs.budgets import MICROS
from agents.runs.models import IS_PENDING, PARKED, Approval, ApprovalKind, Event, Run, RunStatus
from agents.webhooks.models import WebhookDelivery, WebhookDeliveryStatus
from tools.caches import Cache

CACHED_S = 2.0
"""The number of seconds for which a response is reused, so that many requests do not load the
database."""
_STARTED_AT = time.monotonic()
_DATABASE_UP = "1 if the database responds and is migrated."
_OPEN = (RunStatus.QUEUED, RunStatus.RUNNING, *PARKED)


_response: Cache[str, tuple[float, bytes]] = Cache(1)
"""This process's newest response, and the monotonic time at which it expires."""
_rendering = threading.Lock()


def get_metrics() -> bytes:
    """Return all metrics, which are at most CACHED_S seconds old; requests wait while the metrics
    are computed."""
    with _rendering:
        until, text = _response.get("") or (0.0, b"")
        if time.monotonic() >= until:
            text = render_metrics()
            _response.put("", (time.monotonic() + CACHED_S, text))
        return text


def render_metrics() -> bytes:
    """Return all metrics in the Prometheus text format. While the database is down, return only
    those that do not need it."""
    registry = CollectorRegistry()
    registry.register(_InstallationCollector())
    return generate_latest(registry)


class _InstallationCollector(Collector):
    """Collects all metrics for a registry."""

    def describe(self) -> list[Metric]:
        return []  # so that registering the collector does not need the database

    def collect(self) -> Iterator[Metric]:
        _PRESENCE.start()
        _OUTAGE.start()
        yield _build_version()
        yield from _count_processes(_PRESENCE.read())
        if _OUTAGE.read() is not None:
            yield _build_gauge("gadget_database_up", _DATABASE_UP, 0)
            return
        try:
            found = [*_build_state(), *_build_tool_counters(), *_build_model_counters()]
        except (OperationalError, InterfaceError):
            connection.close()
            yield _build_gauge("gadget_database_up", _DATABASE_UP, 0)
            return
        yield _build_gauge("gadget_database_up", _DATABASE_UP, 1)
        yield from found


def _find_outage() -> str | None:
    """Return the reason why the database does not respond, or is not migrated; None if it can be
    read."""
    try:
        check_migrated()
    except NotMigratedError as error:
        return str(error)
    except (OperationalError, InterfaceError) as error:
        return describe_outage(error) or UNREACHABLE
    return None


_OUTAGE: BackgroundCheck[str | None] = BackgroundCheck(_find_outage, UNREACHABLE, max_age_s=0.0)
_PRESENCE = BackgroundCheck(load_presence, Presence(None, None, (REDIS,)), max_age_s=0.0)
"""This check and `_OUTAGE` run in the background, so that metrics take at most two seconds even if
a server does not respond."""


def _build_gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _build_version() -> Metric:
    labels = {
        "orchestrator": settings.GADGET_CONFIG.tools.orchestrator_id,
        "version": settings.GADGET_VERSION,
        "python": python_version(),
        "database": connection.vendor,
    }
    build = GaugeMetricFamily(
        "gadget_build_info", "The version that runs here; always 1.", labels=list(labels)
    )
    build.add_metric(list(labels.values()), 1)
    return build


def _count_processes(presence: Presence) -> Iterator[Metric]:
    """Build the metrics of Redis and of living processes; without Redis, no process is known, so
    the numbers are 0."""
    yield _build_gauge(
        "gadget_redis_up", "1 if Redis responds.", int(REDIS not in presence.missing)
    )
    alive = GaugeMetricFamily(
        "gadget_processes", "Workers and sweepers that are alive.", labels=["part"]
    )
    for kind in (WORKER, SWEEPER):
        alive.add_metric([kind], len(presence.names.get(kind, ())))
    yield alive


def _build_state() -> Iterator[Metric]:
    """Build the metrics of the current state."""
    organizations: list[tuple[int, datetime]] = list(
        Organization.objects.order_by().values_list("pk", Now())
    )
    ids, now = [pk for pk, _ in organizations], max((at for _, at in organizations), default=None)
    counted = (
        Run.objects.filter(organization_id__in=ids, status__in=_OPEN)
        .order_by()
        .values_list("status")
    )
    many = dict(counted.annotate(many=Count("pk")))
    runs = GaugeMetricFamily("gadget_runs", "Runs that have not ended.", labels=["status"])
    for status in _OPEN:
        runs.add_metric([str(status)], many.get(str(status), 0))
    yield runs
    yield from _build_queue(now)
    yield from _build_leases()
    yield from _build_cards(now)
    yield from _build_notices(now)
    yield _build_reading(now)
    yield from _build_counting(now)


def _build_queue(now: datetime | None) -> Iterator[Metric]:
    """Build the metrics of due runs: queued runs that a worker could take now, except those that
    are stopped or wait until a later time."""
    due = Q(next_wake_at=None) | Q(next_wake_at__lte=Now())
    newest = Event.objects.filter(run_id=OuterRef("pk")).order_by("-seq").values("created_at")[:1]
    runs = Run.objects.filter(due, status=RunStatus.QUEUED, stopped_because="").order_by()
    found = runs.annotate(since=Coalesce("next_wake_at", Subquery(newest), "created_at")).aggregate(
        many=Count("pk"), oldest=Min("since")
    )
    yield _build_gauge(
        "gadget_queue_runs", "Due runs that no worker has started to drive.", found["many"]
    )
    yield _build_gauge(
        "gadget_queue_oldest_seconds",
        "Time since the oldest of the due runs became due.",
        _get_age(found["oldest"], now),
    )


def _build_leases() -> Iterator[Metric]:
    lost = Count("pk", filter=Q(lease_expires_at__lt=Now()))
    found = (
        Run.objects.filter(status=RunStatus.RUNNING)
        .order_by()
        .aggregate(many=Count("pk"), lost=lost)
    )
    yield _build_gauge("gadget_leases", "Runs that a worker drives.", found["many"])
    yield _build_gauge(
        "gadget_leases_expired", "Leases that were not renewed in time.", found["lost"]
    )


def _build_cards(now: datetime | None) -> Iterator[Metric]:
    waiting = Approval.objects.filter(IS_PENDING).order_by().values_list("kind")
    found = {
        kind: (many, oldest)
        for kind, many, oldest in waiting.annotate(Count("pk"), Min("requested_at"))
    }
    cards = GaugeMetricFamily("gadget_open_cards", "Cards that wait for a person.", labels=["kind"])
    oldest = GaugeMetricFamily(
        "gadget_open_cards_oldest_seconds", "Age of the oldest open card.", labels=["kind"]
    )
    for kind in ApprovalKind.values:
        many, since = found.get(kind, (0, None))
        cards.add_metric([kind], many)
        oldest.add_metric([kind], _get_age(since, now))
    yield cards
    yield oldest


def _build_notices(now: datetime | None) -> Iterator[Metric]:
    """Build the metrics of notices and webhooks: deliveries that are due or waiting, and
    notifications that were given up."""
    unspread = Notice.objects.filter(spread_at=None).aggregate(
        many=Count("pk"), oldest=Min("created_at")
    )
    due = Delivery.objects.filter(status=DeliveryStatus.WAITING, due_at__lte=Now())
    late = due.aggregate(many=Count("pk"), oldest=Min("due_at"))
    failed = Delivery.objects.filter(status=DeliveryStatus.FAILED).count()
    oldest = min((at for at in (unspread["oldest"], late["oldest"]) if at), default=None)
    many = unspread["many"] + late["many"]
    yield _build_gauge("gadget_notices_due", "Notices and notifications that are due.", many)
    yield _build_gauge(
        "gadget_notices_due_oldest_seconds",
        "Age of the oldest notice or notification that is due.",
        _get_age(oldest, now),
    )
    yield _build_gauge("gadget_messages_failed", "Notifications that were given up.", failed)
    waiting = WebhookDelivery.objects.filter(status=WebhookDeliveryStatus.WAITING)
    webhooks = waiting.aggregate(many=Count("pk"), oldest=Min("created_at"))
    yield _build_gauge(
        "gadget_webhook_deliveries_waiting", "Webhook deliveries that wait.", webhooks["many"]
    )
    age = _get_age(webhooks["oldest"], now)
    yield _build_gauge(
        "gadget_webhook_deliveries_oldest_seconds", "Age of the oldest waiting delivery.", age
    )


def _build_reading(now: datetime | None) -> Metric:
    """Build the metric of unread events' ages, the first sign that readers fall behind."""
    text = "Age of the oldest event that a reader should have read; normally a few seconds."
    ages = GaugeMetricFamily("gadget_unread_events_oldest_seconds", text, labels=["reader"])
    for name, oldest in find_oldest_unread():
        ages.add_metric([name], _get_age(oldest, now))
    return ages


def _build_counting(now: datetime | None) -> Iterator[Metric]:
    newest = Event.objects.aggregate(newest=Max("pk"))["newest"] or 0
    head = FiguresHead.objects.filter(pk=FiguresHead.ONLY).first()
    age = _get_age(head.looked_at, now) if head else time.monotonic() - _STARTED_AT
    text = "Time since a sweeper last looked, or since this process started if none has; normally about 10 s."
    yield _build_gauge("gadget_sweep_age_seconds", text, age)
    left = max(0, newest - (head.event_id if head else 0))
    yield _build_gauge(
        "gadget_uncounted_events",
        "Upper bound on the number of events that are not counted yet.",
        left,
    )


def _get_age(since: datetime | None, now: datetime | None) -> float:
    return max(0.0, (now - since).total_seconds()) if since and now else 0.0


def _build_tool_counters() -> Iterator[Metric]:
    """Build the counters of calls, for all organizations together."""
    calls = CounterMetricFamily("gadget_tool_calls", "Finished calls.", labels=["tool", "outcome"])
    cards = CounterMetricFamily(
        "gadget_tool_cards",
        "Cards that were requested, approved or denied.",
        labels=["tool", "what"],
    )
    cost = CounterMetricFamily(
        "gadget_tool_cost", "Cost that results reported.", labels=["tool", "currency"]
    )
    took = HistogramMetricFamily(
        "gadget_tool_call_duration_seconds", "Duration of calls.", labels=["tool"]
    )
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
        upto = accumulate(
            sum(getattr(row, column) for row in rows) for column in (*BUCKETS, "longer")
        )
        ends = [*(f"{longest / 1000:g}" for longest in BUCKETS.values()), "+Inf"]
        seconds = sum(row.duration_ms for row in rows) / 1000
        took.add_metric([tool], list(zip(ends, upto, strict=True)), seconds)
    yield from (calls, cards, cost, took)


def _build_model_counters() -> Iterator[Metric]:
    """Build the counters of passes and runs."""
    rows = list(TotalUse.objects.all())
    runs = CounterMetricFamily(
        "gadget_runs_finished", "Finished runs; a continued run finishes again.", labels=["status"]
    )
    for status, column in RUN_ENDS.items():
        runs.add_metric([status], sum(getattr(row, column) for row in rows))
    tokens = CounterMetricFamily(
        "gadget_tokens", "Tokens that models read and wrote.", labels=["direction"]
    )
    tokens.add_metric(["input"], sum(row.input_tokens for row in rows))
    tokens.add_metric(["output"], sum(row.output_tokens for row in rows))
    cost = CounterMetricFamily(
        "gadget_model_cost", "Cost of models that have a price.", labels=["currency"]
    )
    for row in rows:
        cost.add_metric([row.currency], row.cost_micros / MICROS)
    seconds = sum(row.duration_ms for row in rows) / 1000
    yield CounterMetricFamily(
        "gadget_passes", "Responses of models.", value=sum(row.passes for row in rows)
    )
    yield CounterMetricFamily(
        "gadget_model_seconds", "Time that models took to respond.", value=seconds
    )
    yield from (runs, tokens, cost)
