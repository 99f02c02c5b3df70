"""The only doorway from the queue: a message is the id of a run or of a source of tools, nothing else."""

import logging
import os
import signal
from concurrent.futures import ThreadPoolExecutor

from celery import shared_task
from celery.signals import worker_init, worker_shutdown, worker_shutting_down
from django.conf import settings
from django.db import close_old_connections, connection

from agents.employees import sources
from agents.employees.toolboxes import installed_toolbox
from agents.platform import notify
from agents.platform.boundaries import surviving
from agents.platform.database_condition import UNAVAILABLE, condition_of
from agents.platform.identity import confirm_at_start
from agents.runs.engine import lease
from agents.runs.engine.loop import advance
from agents.runs.titles import title_run
from agents.worker.lookout import Lookout
from tools.toolbox.threads import abandoned_threads

logger = logging.getLogger(__name__)

MOST_ABANDONED = 8
"""Tool threads that outlived their timeouts; at so many the worker leaves, and is started again."""

NAMED_AT_ONCE = 4
_naming = ThreadPoolExecutor(NAMED_AT_ONCE, thread_name_prefix="naming")

_lookouts: list[Lookout] = []


@shared_task(name=notify.ADVANCE_JOB, ignore_result=True)  # type: ignore[untyped-decorator]  # Celery has no types
def advance_run(run_id: int) -> None:
    """Drive one run; whatever goes wrong stays inside, and the sweeper finds the run again."""
    close_old_connections()
    try:
        advance(run_id)
    except UNAVAILABLE as error:
        logger.warning("run %s: %s (%s)", run_id, condition_of(error) or "the database failed", error)
    except BaseException:
        logger.exception("run %s: the engine failed", run_id)
    finally:
        connection.close()
    if abandoned_threads() >= MOST_ABANDONED and not lease.is_going_down():
        logger.error("%d tool threads hang; this worker leaves", abandoned_threads())
        lease.go_down()
        os.kill(os.getpid(), signal.SIGTERM)


@shared_task(name=notify.TITLE_JOB, ignore_result=True)  # type: ignore[untyped-decorator]
def name_run(run_id: int) -> None:
    """Have one run named by threads of their own: a name may come late, and no run waits for it."""
    _naming.submit(_name, run_id)


def _name(run_id: int) -> None:
    """Give the run a name; whatever goes wrong, it goes on without. A worker that leaves asks another one to do it."""
    try:
        with surviving(f"naming run {run_id}"):
            close_old_connections()
            if not lease.is_going_down():
                title_run(run_id)
    finally:
        connection.close()
    if lease.is_going_down():
        notify.request_title(run_id)


@shared_task(name=notify.REFRESH_JOB, ignore_result=True)  # type: ignore[untyped-decorator]
def refresh_source(source_id: int) -> None:
    """Read a source's description anew; what goes wrong stands on the source."""
    close_old_connections()
    with surviving(f"refreshing source {source_id}"):
        sources.refresh_one(source_id)
    connection.close()


@worker_init.connect  # type: ignore[untyped-decorator]
def _begin(**_: object) -> None:
    """End a worker with another folder or other keys before it takes a run."""
    confirm_at_start()
    lookout = Lookout(settings.GADGET_WORKER_THREADS, advance_run)
    _lookouts.append(lookout)
    lookout.start()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _leave(**_: object) -> None:
    lease.go_down()


@worker_shutdown.connect  # type: ignore[untyped-decorator]
def _put_away(**_: object) -> None:
    """The last act: no run is driven any more, and what was put back is sent."""
    for lookout in _lookouts:
        lookout.stop()
    _naming.shutdown()
    notify.wait_until_sent()
    installed_toolbox().shutdown()
