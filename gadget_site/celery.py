"""The Celery app: its messages wake runs. The database holds the truth, so a lost message only
delays a run by seconds."""

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
from gadget_site.garbage_collection import freeze_loaded_objects
from gadget_site.open_files import allow_open_files

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gadget_site.settings")
# Celery warns about running as root, which is safe with a queue of plain JSON.
warnings.filterwarnings("ignore", category=SecurityWarning)
log = structlog.get_logger(__name__)
signs_of_life: list[SignOfLife] = []


class GadgetQueue(Celery):  # type: ignore[misc]
    """The class of the Celery app, whose workers are `QuietWorker`s."""

    @cached_property
    def Worker(self) -> Any:  # noqa: N802
        return self.subclass_with_self("gadget_site.quiet_worker:QuietWorker")


app = GadgetQueue("gadget", amqp=PatientQueue)
app.config_from_object("django.conf:settings", namespace="CELERY")


def keep_our_logging(**_: Any) -> None:
    """Keep the logging of settings.py: Celery does not configure its own while this handler
    exists."""


def prepare_worker(**_: Any) -> None:
    """Prepare this process for runs. DEBUG is turned off, because Django would otherwise keep every
    query of every thread."""
    settings.DEBUG = False
    allow_open_files()
    start_heartbeat()
    app.log.redirect_stdouts("WARNING")  # so that secrets are removed from what a tool prints
    preload_providers()


def announce_worker(sender: Any, **_: Any) -> None:
    """Start the worker's signs of life, and log that it is ready."""
    sign_of_life = SignOfLife(WORKER, sender.hostname)
    sign_of_life.start()
    freeze_loaded_objects()
    # Celery's pending deprecations concern late acknowledgement, which is off.
    warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)
    signs_of_life.append(sign_of_life)
    log.info(
        "worker ready",
        name=sender.hostname,
        queue=settings.GADGET_QUEUE,
        threads=settings.GADGET_WORKER_THREADS,
    )


def withdraw_worker(**_: Any) -> None:
    """End the signs of life of a worker that shuts down."""
    while signs_of_life:
        signs_of_life.pop().stop()


setup_logging.connect(keep_our_logging)
worker_init.connect(prepare_worker)
worker_ready.connect(announce_worker)
worker_shutting_down.connect(withdraw_worker)
