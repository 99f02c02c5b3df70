"""The queue: hints that wake runs. The database stays the truth, so losing every message costs seconds only."""

from __future__ import annotations

import os
import warnings
from typing import Any

import structlog
from celery import Celery
from celery.app.amqp import AMQP
from celery.exceptions import CPendingDeprecationWarning, SecurityWarning
from celery.signals import setup_logging, worker_init, worker_ready, worker_shutting_down
from django.conf import settings
from kombu.connection import Connection

from agents.liveness import WORKER, Pulse
from agents.providers.choice import load_providers
from gadget_site.memory import settle_memory

LONGEST_PAUSE_S = 2.0

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gadget_site.settings")
warnings.filterwarnings("ignore", category=SecurityWarning)  # root is no danger to a queue of plain JSON
log = structlog.get_logger(__name__)
pulses: list[Pulse] = []


class PatientConnection(Connection):
    """A connection that looks for a lost Redis at least every two seconds, for as long as it takes."""

    def _ensure_connection(self, *args: Any, **options: Any) -> Any:
        options.update(interval_start=0.2, interval_step=0.4, interval_max=LONGEST_PAUSE_S)
        return super()._ensure_connection(*args, **options)  # type: ignore[no-untyped-call]


class PatientQueue(AMQP):  # type: ignore[misc]
    """Celery's door to the broker, with connections that come back quickly."""

    Connection = PatientConnection


app = Celery("gadget", amqp=PatientQueue)
app.config_from_object("django.conf:settings", namespace="CELERY")


def keep_the_logging_of_settings(**_: Any) -> None:
    """Celery leaves logging alone when somebody listens here."""


def prepare_the_worker(**_: Any) -> None:
    """A worker asks models. It shows no error pages: with DEBUG, Django would remember every query of every thread."""
    settings.DEBUG = False
    app.log.redirect_stdouts("WARNING")  # what a tool prints is cleaned of secrets like any line of the log
    load_providers()


def tell_that_the_worker_is_ready(sender: Any, **_: Any) -> None:
    """Leaves signs of life from now on, and says so in the log."""
    pulse = Pulse(WORKER, sender.hostname)
    pulse.start()
    settle_memory()
    warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)  # of late acknowledgement, which is off
    pulses.append(pulse)
    log.info("worker ready", name=sender.hostname, queue=settings.GADGET_QUEUE, threads=settings.GADGET_WORKER_THREADS)


def take_the_signs_away(**_: Any) -> None:
    """Nobody should count on a worker that is leaving."""
    while pulses:
        pulses.pop().stop()


setup_logging.connect(keep_the_logging_of_settings)
worker_init.connect(prepare_the_worker)
worker_ready.connect(tell_that_the_worker_is_ready)
worker_shutting_down.connect(take_the_signs_away)
