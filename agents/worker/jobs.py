"""The jobs of the queue: the argument of each job is the id of a run or a tool source, or 0."""

import logging
import os
import signal
from concurrent.futures import ThreadPoolExecutor

from celery import shared_task
from celery.signals import worker_init, worker_shutdown, worker_shutting_down
from django.conf import settings
from django.db import close_old_connections, connection

from agents.accounts.installation import confirm_at_start
from agents.employees import sources
from agents.employees.toolboxes import get_installed_toolbox
from agents.platform import notify
from agents.platform.database_outages import OUTAGE_ERRORS, describe_outage
from agents.platform.error_boundary import log_and_continue
from agents.platform.log_context import log_for_nobody
from agents.runs.engine import lease
from agents.runs.engine.loop import advance
from agents.runs.titles import title_run
from agents.worker.card_renewer import build_card_renewer
from agents.worker.notice_sender import NoticeSender, RepeatingThread
from agents.worker.run_poller import RunPoller
from tools.toolbox.threads import count_abandoned_threads

logger = logging.getLogger(__name__)

MAX_ABANDONED = 8
"""The number of tool threads running beyond their timeouts at which the worker shuts down and is
restarted."""

TITLES_AT_ONCE = 4
_title_threads = ThreadPoolExecutor(TITLES_AT_ONCE, thread_name_prefix="titles")

_pollers: list[RunPoller] = []
_senders: list[NoticeSender] = []
_renewers: list[RepeatingThread] = []


@shared_task(name=notify.ADVANCE_JOB, ignore_result=True)  # type: ignore[untyped-decorator]  # Celery has no types
def advance_run(run_id: int) -> None:
    """Drive one run; failures are logged, and the sweeper finds the run again."""
    close_old_connections()
    log_for_nobody()
    try:
        advance(run_id)
    except OUTAGE_ERRORS as error:
        logger.warning(
            "run %s: %s (%s)", run_id, describe_outage(error) or "the database failed", error
        )
    except BaseException:
        logger.exception("run %s: the engine failed", run_id)
    finally:
        connection.close()
    if count_abandoned_threads() >= MAX_ABANDONED and not lease.is_shutting_down():
        logger.error("%d tool threads hang; this worker shuts down", count_abandoned_threads())
        lease.shut_down()
        os.kill(os.getpid(), signal.SIGTERM)


@shared_task(name=notify.TITLE_JOB, ignore_result=True)  # type: ignore[untyped-decorator]
def name_run(run_id: int) -> None:
    """Give a run a title in a separate thread, so that no run waits for titles."""
    _title_threads.submit(_title, run_id)


def _title(run_id: int) -> None:
    """Give the run a title, without a retry after a failure; at shutdown, pass the request on to
    another worker."""
    try:
        with log_and_continue(f"titling run {run_id}"):
            close_old_connections()
            log_for_nobody()
            if not lease.is_shutting_down():
                title_run(run_id)
    finally:
        connection.close()
    if lease.is_shutting_down():
        notify.request_title(run_id)


@shared_task(name=notify.REFRESH_JOB, ignore_result=True)  # type: ignore[untyped-decorator]
def refresh_source(source_id: int) -> None:
    """Read a source's description again; a failure is recorded on the source."""
    close_old_connections()
    log_for_nobody()
    with log_and_continue(f"refreshing source {source_id}"):
        sources.refresh_source_by_id(source_id)
    connection.close()


@shared_task(name=notify.DELIVERY_JOB, ignore_result=True)  # type: ignore[untyped-decorator]
def deliver_notices(_: int) -> None:
    """Wake the threads that send notices."""
    for sender in _senders:
        sender.wake()


@shared_task(name=notify.READING_JOB, ignore_result=True)  # type: ignore[untyped-decorator]
def read_events(_: int) -> None:
    """Wake the thread that reads events."""
    for sender in _senders:
        sender.wake_reader()


@shared_task(name=notify.RENEWAL_JOB, ignore_result=True)  # type: ignore[untyped-decorator]
def renew_withheld(_: int) -> None:
    """Wake the thread that renews the cards of withheld bulks."""
    for renewer in _renewers:
        renewer.wake()


@worker_init.connect  # type: ignore[untyped-decorator]
def _start_worker(**_: object) -> None:
    """Check that this worker has the installation's folder and keys, then start its threads."""
    confirm_at_start()
    poller = RunPoller(settings.GADGET_WORKER_THREADS, advance_run)
    _pollers.append(poller)
    poller.start()
    sender = NoticeSender()
    _senders.append(sender)
    sender.start()
    renewer = build_card_renewer()
    _renewers.append(renewer)
    renewer.start()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _shut_down(**_: object) -> None:
    lease.shut_down()
    for sender in _senders:
        sender.finish()
    for renewer in _renewers:
        renewer.finish()


@worker_shutdown.connect  # type: ignore[untyped-decorator]
def _finish_worker(**_: object) -> None:
    """Finish the worker after its last run: stop its threads and send the remaining hints."""
    for poller in _pollers:
        poller.stop()
    for sender in _senders:
        sender.stop()
    for renewer in _renewers:
        renewer.stop()
    _title_threads.shutdown()
    notify.wait_until_sent()
    get_installed_toolbox().shutdown()
