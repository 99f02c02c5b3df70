"""The queue: hints that wake runs. The database stays the truth, so losing every message costs seconds only."""

from __future__ import annotations

import os
import warnings
from functools import cached_property
from typing import Any

import structlog
from celery import Celery
from celery.exceptions import CPendingDeprecationWarning, SecurityWarning
from celery.signals import setup_logging, worker_init, worker_ready, worker_shutting_down
from django.conf import settings

from agents.platform.liveness import WORKER, SignOfLife, start_heartbeat
from agents.providers.registry import preload_providers
from gadget_site.broker import PatientQueue
from gadget_site.memory import settle_memory
from gadget_site.open_files import allow_open_files

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gadget_site.settings")
warnings.filterwarnings("ignore", category=SecurityWarning)  # root is no danger to a queue of plain JSON
log = structlog.get_logger(__name__)
pulses: list[SignOfLife] = []


class GadgetQueue(Celery):  # type: ignore[misc]
    """Celery with our own workers."""

    @cached_property
    def Worker(self) -> Any:  # noqa: N802
        return self.subclass_with_self("gadget_site.quiet_worker:QuietWorker")


app = GadgetQueue("gadget", amqp=PatientQueue)
app.config_from_object("django.conf:settings", namespace="CELERY")


def keep_the_logging_of_settings(**_: Any) -> None:
    """Celery leaves logging alone when somebody listens here."""


def prepare_the_worker(**_: Any) -> None:
    """A worker asks models. It shows no error pages: with DEBUG, Django would remember every query of every thread."""
    settings.DEBUG = False
    allow_open_files()
    start_heartbeat()
    app.log.redirect_stdouts("WARNING")  # what a tool prints is cleaned of secrets like any line of the log
    preload_providers()


def tell_that_the_worker_is_ready(sender: Any, **_: Any) -> None:
    """Leaves signs of life from now on, and says so in the log."""
    pulse = SignOfLife(WORKER, sender.hostname)
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
