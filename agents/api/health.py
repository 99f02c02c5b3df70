"""Health checks for load balancers and monitoring, of this process and of the whole
installation."""

from django.http import HttpRequest
from ninja import Router

from agents.api.documentation import document_problems
from agents.api.schemas import HealthStatus, Readiness
from agents.platform.liveness import REDIS, Presence, load_presence
from agents.platform.writability import DATABASE, FILES, BackgroundCheck

RETRY_AFTER_S = 2
router = Router(tags=["Health"], auth=None)


@router.get("/health", response=HealthStatus, summary="Check the process")
def show_health(request: HttpRequest) -> HealthStatus:
    """Return 200 while this process runs."""
    return HealthStatus()


@router.get(
    "/ready",
    response=Readiness,
    summary="Check the installation",
    openapi_extra=document_problems(503),
)
def show_readiness(request: HttpRequest) -> Readiness:
    """Return 200 while the database accepts writes, else 503; `degraded` lists everything else that
    is unavailable.

    The `code` of 503 is `not_migrated` until the database has the tables of this version, else
    `database_away`.

    The checks run in parallel in the background, so the response takes at most two seconds even if
    one hangs.
    """
    PRESENCE.start()
    FILES.start()
    if condition := DATABASE.read():
        raise type(condition)(condition.detail, retry_after=RETRY_AFTER_S)
    found, fault = PRESENCE.read(), FILES.read()
    return Readiness(
        degraded=[*found.missing, *(["files"] if fault is not None else [])],
        workers_alive=found.workers_alive,
        workers_seen=found.workers_seen,
    )


PRESENCE = BackgroundCheck(load_presence, Presence(None, None, (REDIS,)), max_age_s=0.0)
