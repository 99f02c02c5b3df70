"""A worker drops unreadable elements from its queue, and continues."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from celery import current_app
from kombu.connection import Connection

from agents.platform import notify
from gadget_site.addresses import build_broker_url
from tests.gadget_site.test_processes import listeners, until
from tests.processes import Installation, RealProcess

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

THREADS = 4
WHOLE: dict[str, Any] = {
    "body": "W10=",
    "content-type": "application/json",
    "content-encoding": "utf-8",
    "headers": {"task": "agents.worker.jobs.advance_run", "id": "1"},
    "properties": {
        "delivery_tag": "1",
        "body_encoding": "base64",
        "delivery_info": {"exchange": "", "routing_key": ""},
    },
}
CORRUPT = [
    b"not json",
    b"\xff\xfe\x00",
    b"",
    b"[" * 2_000,
    b"[]",
    b"7",
    b'{"properties": 5}',
    b'{"body": "e30="}',
    b'{"__type__": "uuid", "__value__": "x"}',
    *(json.dumps(WHOLE | changed).encode() for changed in (
        {"body": "@@@"},
        {"properties": WHOLE["properties"] | {"delivery_info": None}},
        {"headers": {"task": ["a list"]}},
        {"headers": {"task": "no.such.task", "id": 5}},
        {"headers": {"task": "no.such.task"}, "body": "//4="},
        {"headers": None},
        {"headers": WHOLE["headers"] | {"eta": "yesterday"}},
        {"content-type": "application/x-python-serialize"},
        {"body": "bm8ganNvbg=="},
    )),
]  # fmt: skip


@pytest.fixture
def worker(installation: Installation) -> RealProcess:
    installation.variables["WORKER_THREADS"] = str(THREADS)
    started = installation.start_worker()
    until(lambda: listeners(installation) == 1)
    return started


@pytest.fixture
def client(installation: Installation) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(installation.redis.url) as connected:
        yield connected


def send(installation: Installation) -> None:
    """Send a valid message about a run that does not exist."""
    with Connection(build_broker_url(installation.redis.url)) as queue:  # type: ignore[no-untyped-call]
        place = {"connection": queue, "queue": installation.queue}
        current_app.send_task(notify.ADVANCE_JOB, args=[0], ignore_result=True, **place)


def assert_at_work(worker: RealProcess, installation: Installation, client: redis.Redis) -> None:
    until(lambda: listeners(installation) == 1)
    send(installation)
    until(lambda: client.exists(installation.queue) == 0)
    assert worker.is_alive, worker.output


def test_unreadable_elements_are_dropped_and_the_worker_continues(
    worker: RealProcess, installation: Installation, client: redis.Redis
) -> None:
    for number in range(2 * THREADS):
        tagged = (
            each.replace(b'"delivery_tag": "1"', b'"delivery_tag": "%d"' % number)
            for each in CORRUPT
        )
        client.rpush(installation.queue, *tagged)
    until(lambda: client.exists(installation.queue) == 0)
    assert_at_work(worker, installation, client)
    worker.await_line("dropped a queue element that is not a message")


def test_a_queue_key_of_another_type_is_deleted(
    worker: RealProcess, installation: Installation, client: redis.Redis
) -> None:
    client.rpush(f"{installation.queue}\x06\x163", "not json")
    for key in (installation.queue, f"_kombu.binding.{installation.queue}"):
        client.delete(key)
        client.set(key, "of another type")
    worker.await_line("deleted a queue key that is not ours")
    until(lambda: client.type(installation.queue) != b"string")
    assert_at_work(worker, installation, client)


def test_a_worker_does_not_use_gossip_mingle_or_heartbeat_even_without_command_line_options(
    installation: Installation,
) -> None:
    probe = (
        "from gadget_site.celery import app; worker = app.Worker(pool='threads');"
        "print([step.alias for step in worker.consumer.blueprint.order if getattr(step, 'enabled', True)])"
    )
    asked = subprocess.run(
        [sys.executable, "-c", probe],
        env=installation.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "'Tasks'" in asked.stderr
    assert not {"Gossip", "Mingle", "Heart"} & set(re.findall(r"\w+", asked.stderr))


def test_a_web_part_that_cannot_listen_fails_with_the_reason(installation: Installation) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        environment = {**os.environ, **installation.environment, "PORT": port}
        command = [sys.executable, "-m", "gadget_site.web"]
        ended = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=60
        )
    assert ended.returncode == 1
    assert f"Cannot listen on 127.0.0.1:{port}" in ended.stderr
    assert "web ready" not in ended.stdout + ended.stderr
