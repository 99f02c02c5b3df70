"""Health, for load balancers and monitoring: alive is the process, ready is the installation."""

from django.http import HttpRequest
from ninja import Router

from agents.api.schemas import Alive, Readiness
from agents.platform.liveness import REDIS, Presence, look_around
from agents.platform.refusals import Unavailable
from agents.platform.writability import DATABASE, FILES, Watch

from .documentation import refusals

RETRY_AFTER_S = 2
router = Router(tags=["Health"], auth=None)


@router.get("/health", response=Alive, summary="Alive")
def show_health(request: HttpRequest) -> Alive:
    """200 while this process answers at all."""
    return Alive()


@router.get("/ready", response=Readiness, summary="Ready", openapi_extra=refusals(503))
def show_readiness(request: HttpRequest) -> Readiness:
    """Answer 200 while the database accepts writes, else 503; `degraded` lists everything else that is unavailable.

    The checks run beside the request and each other, so it is answered within two seconds, whatever hangs.
    """
    PRESENCE.start()
    FILES.start()
    if condition := DATABASE.look():
        raise Unavailable(condition, retry_after=RETRY_AFTER_S)
    found, fault = PRESENCE.look(), FILES.look()
    return Readiness(
        degraded=[*found.missing, *(["files"] if fault else [])],
        workers_alive=found.workers_alive,
        workers_seen=found.workers_seen,
    )


PRESENCE = Watch(look_around, Presence(None, None, (REDIS,)), fresh_s=0.0)
