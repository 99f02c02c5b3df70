"""The jobs that wait for the workers, as stored in Redis."""

import json
from base64 import b64decode
from contextlib import closing
from typing import Any, NamedTuple

import redis
from django.conf import settings

from agents.platform import notify


class QueuedJob(NamedTuple):
    """A job with the arguments that its task gets."""

    task: str
    arguments: list[Any]
    keywords: dict[str, Any]


def take_jobs(url: str) -> list[QueuedJob]:
    """Empty the queue, and return its jobs, newest first."""
    notify.wait_until_sent()
    with closing(redis.Redis.from_url(url)) as client, client.pipeline() as commands:
        commands.lrange(settings.GADGET_QUEUE, 0, -1)
        commands.delete(settings.GADGET_QUEUE)
        messages = [json.loads(raw) for raw in commands.execute()[0]]
    return [
        QueuedJob(message["headers"]["task"], *json.loads(b64decode(message["body"]))[:2])
        for message in messages
    ]
