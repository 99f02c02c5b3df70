"""Upkeep: the sweeper deletes expired sessions once an hour, and keeps valid sessions."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from agents.accounts.logins import sessions
from agents.webhooks.models import WebhookDelivery
from agents.worker.upkeep import HOUR_S, Upkeep
from tests.world import World, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return make_world()


def add_session(expires_in: timedelta) -> str:
    store = SessionStore()
    store.create()
    Session.objects.filter(pk=store.session_key).update(expire_date=timezone.now() + expires_in)
    return str(store.session_key)


def test_expired_sessions_are_deleted_and_valid_sessions_are_kept(world: World) -> None:
    client: Client = world.client("approver")
    living = {add_session(timedelta(minutes=1)), str(client.session.session_key)}
    expired = [add_session(timedelta(seconds=-1)) for _ in range(3)]
    assert sessions.forget_expired_sessions(at_once=2) == 3
    assert (
        set(Session.objects.filter(expire_date__gt=timezone.now()).values_list("pk", flat=True))
        >= living
    )
    assert not Session.objects.filter(pk__in=expired).exists()
    assert client.get("/runs/").status_code == 200


def test_a_sweeper_deletes_expired_sessions_when_it_starts_and_every_hour() -> None:
    now = [0.0]
    upkeep = Upkeep(lambda: now[0])
    stays = []
    for now[0] in (0.0, HOUR_S - 1, HOUR_S):
        session = add_session(timedelta(seconds=-1))
        upkeep.do_what_is_due()
        stays.append(Session.objects.filter(pk=session).exists())
    assert stays == [False, True, False]


def test_a_failing_task_does_not_delay_other_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WebhookDelivery, "objects", None)
    session = add_session(timedelta(seconds=-1))
    Upkeep().do_what_is_due()
    assert not Session.objects.filter(pk=session).exists()
