"""Health, for load balancers and monitoring: alive is the process, ready is the installation."""

import redis
from django.db import connection
from django.http import HttpRequest
from ninja import Router

from agents.liveness import SWEEPER, WORKER, living
from agents.schemas import Alive, Readiness

from .documentation import refusals

router = Router(tags=["Health"], auth=None)


@router.get("/health", response=Alive, summary="Alive")
def show_health(request: HttpRequest) -> Alive:
    """200 while this process answers at all."""
    return Alive()


@router.get("/ready", response=Readiness, summary="Ready", openapi_extra=refusals(503))
def show_readiness(request: HttpRequest) -> Readiness:
    """200 while the database answers; what else is away stands in `degraded`. 503 without the database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return Readiness(degraded=_degraded())


def _degraded() -> list[str]:
    try:
        return [part for part in (WORKER, SWEEPER) if not living(part)]
    except redis.RedisError:
        return ["redis"]
