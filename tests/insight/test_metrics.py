"""/metrics shows the state of the installation in numbers: only to those who have access, without
names, and with the same numbers from every process."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from agents.accounts.models import Organization
from agents.accounts.notice_facts import NoticeKind
from agents.deliveries.models import DeliveryStatus
from agents.insight import metrics
from agents.notices.models import Delivery
from agents.notices.outbox import add_notice, build_card_notice
from agents.notices.spreading import spread_notices
from agents.runs.models import Approval, Run, RunStatus
from gadget_site.edge.proxies import FORWARDED_HEADER
from tests.features import feature
from tests.notices.conftest import add_address
from tests.web.counted import count_calls, count_passes, last_error, sweep_at
from tests.world import SEARCH, World, nobody
from tools.caches import clear_caches

pytestmark = pytest.mark.django_db

TOKEN = "a-token-for-prometheus-only"
Samples = dict[tuple[str, tuple[str, ...]], float]


@pytest.fixture(autouse=True)
def _anew(settings: Settings) -> None:
    settings.GADGET_METRICS_TOKEN, settings.GADGET_ONLY_LOCAL = "", True


def samples() -> Samples:
    """Return the value of each sample by its name and its sorted label values."""
    clear_caches()
    response = nobody().get("/metrics")
    assert response.status_code == 200, response.content
    families = text_string_to_metric_families(response.content.decode())
    found = [sample for family in families for sample in family.samples]
    return {(sample.name, tuple(sorted(sample.labels.values()))): sample.value for sample in found}


class TestContentOfMetrics:
    def test_covers_an_empty_installation(self) -> None:
        found = samples()
        assert found["gadget_database_up", ()] == 1
        assert found["gadget_runs", ("queued",)] == 0
        assert found["gadget_queue_oldest_seconds", ()] == 0
        assert found["gadget_passes_total", ()] == 0
        assert found["gadget_sweep_age_seconds", ()] > 0, "no sweeper has ever looked"
        (build,) = [labels for name, labels in found if name == "gadget_build_info"]
        assert {"0.1.0", "gadget", connection.vendor} <= set(build)

    def test_covers_runs_queues_leases_and_cards(self, world: World) -> None:
        for status in (RunStatus.QUEUED, RunStatus.QUEUED, RunStatus.QUEUED, RunStatus.SUCCEEDED):
            world.run(status)
        later, stopped, due = Run.objects.filter(status=RunStatus.QUEUED).order_by("pk")
        Run.objects.filter(pk=later.pk).update(next_wake_at=Now() + timedelta(hours=1))
        Run.objects.filter(pk=stopped.pk).update(stopped_because="Dana is stopped.")
        Run.objects.filter(pk=due.pk).update(next_wake_at=Now() - timedelta(minutes=5))
        for seconds in (-5, 30):
            lease = {"lease_owner": "me", "lease_expires_at": Now() + timedelta(seconds=seconds)}
            world.run(RunStatus.RUNNING, **lease)
        card = world.card()
        Approval.objects.filter(pk=card.pk).update(requested_at=Now() - timedelta(hours=2))
        world.unknown_call()
        found = samples()
        told = {
            labels[0]: value for (name, labels), value in found.items() if name == "gadget_runs"
        }
        assert told == {"queued": 3, "running": 2, "waiting": 1, "needs_attention": 1}
        assert found["gadget_queue_runs", ()] == 1
        assert found["gadget_queue_oldest_seconds", ()] == pytest.approx(300, abs=20)
        assert (found["gadget_leases", ()], found["gadget_leases_expired", ()]) == (2, 1)
        assert (
            found["gadget_open_cards", ("approval",)],
            found["gadget_open_cards", ("unknown",)],
        ) == (1, 1)
        assert found["gadget_open_cards_oldest_seconds", ("approval",)] == pytest.approx(
            7200, abs=20
        )

    def test_covers_due_notices_and_failed_deliveries(self, world: World) -> None:
        add_address(world.member("approver"))
        add_address(world.member("admin"))
        add_notice(build_card_notice(NoticeKind.CARD, world.card()))
        spread_notices()
        add_notice(build_card_notice(NoticeKind.CARD, world.card()))
        late, failed = Delivery.objects.order_by("pk")
        Delivery.objects.filter(pk=late.pk).update(due_at=Now() - timedelta(minutes=5))
        Delivery.objects.filter(pk=failed.pk).update(status=DeliveryStatus.FAILED, ended_at=Now())
        found = samples()
        assert found["gadget_notices_due", ()] == 2
        assert found["gadget_notices_due_oldest_seconds", ()] == pytest.approx(300, abs=20)
        assert found["gadget_messages_failed", ()] == 1

    @feature(
        "Figures and metrics",
        "`/metrics` for Prometheus, from the database, without names",
        "agents/insight/metrics.py",
    )
    def test_covers_counts_of_all_organizations_together(self, world: World) -> None:
        count_calls(
            world.employee,
            SEARCH,
            succeeded=3,
            within_20=2,
            longer=1,
            duration_ms=2_000_030,
            approved=1,
        )
        count_calls(
            world.others_employee,
            SEARCH,
            days_ago=1,
            succeeded=1,
            **last_error(message="secret words"),
        )
        count_passes(
            world.employee,
            passes=2,
            input_tokens=7,
            output_tokens=3,
            cost_micros=500_000,
            runs_failed=1,
        )
        sweep_at(timezone.now() - timedelta(seconds=40))
        found = samples()
        assert found["gadget_tool_calls_total", (SEARCH, "succeeded")] == 4
        assert found["gadget_tool_calls_total", (SEARCH, "failed")] == 1
        assert found["gadget_tool_cards_total", ("approved", SEARCH)] == 1
        assert found["gadget_tool_call_duration_seconds_bucket", ("0.01", SEARCH)] == 0
        assert found["gadget_tool_call_duration_seconds_bucket", ("0.02", SEARCH)] == 2
        assert found["gadget_tool_call_duration_seconds_bucket", ("+Inf", SEARCH)] == 3
        assert found["gadget_tool_call_duration_seconds_sum", (SEARCH,)] == 2000.03
        assert (found["gadget_passes_total", ()], found["gadget_tokens_total", ("input",)]) == (
            2,
            7,
        )
        assert found["gadget_model_cost_total", ("000",)] == 0.5
        assert found["gadget_runs_finished_total", ("failed",)] == 1
        assert found["gadget_sweep_age_seconds", ()] == pytest.approx(40, abs=20)

    def test_contains_no_names(self, world: World) -> None:
        world.run(title="A secret title")
        count_calls(world.employee, SEARCH, **last_error(message="secret words"))
        text = metrics.render_metrics().decode()
        for name in ("Acme", "acme", "Dana", "operator", "secret", "Globex"):
            assert name not in text

    def test_is_read_with_few_queries_and_cached_briefly(
        self, world: World, django_assert_max_num_queries: Any
    ) -> None:
        for number in range(20):
            world.run(RunStatus.QUEUED)
            Organization.objects.create(name=f"More {number}", slug=f"more-{number}")
        with django_assert_max_num_queries(18):  # including one for each reader of events
            samples()
        with django_assert_max_num_queries(0):
            assert nobody().get("/metrics").status_code == 200


def ask(client: Client, remote: str = "127.0.0.1", **headers: str) -> int:
    return client.get("/metrics", REMOTE_ADDR=remote, headers=headers).status_code


class TestAccessToMetrics:
    def test_is_limited_to_this_machine_without_a_token(self, world: World) -> None:
        assert ask(nobody()) == 200
        assert ask(nobody(), "::1") == 200
        for remote in ("10.0.0.7", "192.168.1.4", "2001:db8::1", ""):
            assert ask(nobody(), remote) == 404
        assert ask(world.client("admin"), "10.0.0.7") == 404

    @feature(
        "Figures and metrics",
        "Access to `/metrics`: with a token; without one, only from this machine and not through a proxy",
        "agents/web/views/metrics.py",
    )
    def test_is_denied_through_a_proxy_without_a_token(self) -> None:
        assert ask(nobody(), **{FORWARDED_HEADER.decode(): "1"}) == 404

    def test_is_denied_without_a_token_where_other_machines_can_connect(
        self, settings: Settings
    ) -> None:
        settings.GADGET_ONLY_LOCAL = False
        assert ask(nobody()) == 404

    def test_is_granted_only_to_the_bearer_of_a_configured_token(
        self, world: World, settings: Settings
    ) -> None:
        settings.GADGET_METRICS_TOKEN, settings.GADGET_ONLY_LOCAL = TOKEN, False
        proxied = {"x-forwarded-for": "10.0.0.7"}
        assert ask(nobody(), "10.0.0.7", authorization=f"Bearer {TOKEN}", **proxied) == 200
        wrong = (
            "",
            "Bearer",
            "Bearer ",
            f"Bearer {TOKEN}x",
            f"Bearer {TOKEN[:-1]}",
            f"Basic {TOKEN}",
            "Bearer ü",
            TOKEN,
        )
        for authorization in wrong:
            assert ask(nobody(), authorization=authorization) == 401
        assert ask(nobody()) == 401
        assert ask(world.client("admin")) == 401
        assert nobody().get(f"/metrics?token={TOKEN}").status_code == 401

    def test_is_read_only_and_responses_are_not_cached(self) -> None:
        answer = nobody().get("/metrics")
        assert answer["Cache-Control"] == "no-store"
        assert answer["Content-Type"].startswith("text/plain; version=")
        assert nobody().head("/metrics").status_code == 200
        assert nobody().post("/metrics").status_code == 405
