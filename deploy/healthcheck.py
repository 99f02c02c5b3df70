#!/usr/bin/env python3
"""Checks a container: `healthcheck web` calls the web part, `healthcheck heartbeat` checks a worker
or sweeper."""

import os
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

FROZEN_AFTER_S = 20
PATIENCE_S = 4


def check_web() -> None:
    """Request /api/health with a host name that ALLOWED_HOSTS accepts."""
    host = os.environ.get("ALLOWED_HOSTS", "").partition(",")[0].strip().lstrip(".*") or "localhost"
    connection = HTTPConnection(
        "127.0.0.1", int(os.environ.get("PORT") or 8000), timeout=PATIENCE_S
    )
    connection.request("GET", "/api/health", headers={"Host": host})
    status = connection.getresponse().status
    if status != 200:
        sys.exit(f"/api/health responds with {status}")


def check_heartbeat() -> None:
    """Check the heartbeat file, which a worker or sweeper touches twice a second while its threads
    run."""
    silent_s = time.time() - Path(os.environ["HEARTBEAT_FILE"]).stat().st_mtime
    if silent_s > FROZEN_AFTER_S:
        sys.exit(f"no heartbeat for {silent_s:.0f} s")


if __name__ == "__main__":
    try:
        {"web": check_web, "heartbeat": check_heartbeat}[sys.argv[1]]()
    except OSError as error:
        sys.exit(str(error))
