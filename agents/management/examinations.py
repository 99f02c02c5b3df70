"""What `manage.py doctor` looks at: each examination says what is well, or what is wrong and how to mend it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from agents.encryption import Place, survey
from agents.engine.passes import check_provider
from agents.engine.toolbox import installed_plugins, installed_toolbox
from agents.liveness import SWEEPER, WORKER, living
from agents.models import ModelProvider
from agents.providers.base import ProviderError
from agents.sources import ask
from tools.connections.changes import sources_to_look_at

KEY_FILES = ("secret_key", "encryption_key")
SQLITE_FULL = 2
PROVIDER_PATIENCE_S = 10.0
MOST_NAMED = 5
START = "start everything with `make run`, or this part alone: "


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's report; `mend` is empty when all is well."""

    subject: str
    text: str
    mend: str = ""

    @property
    def is_well(self) -> bool:
        return not self.mend


def examine() -> Iterator[Finding]:
    """All findings, in the order in which mending makes sense; what cannot be reached is not asked twice."""
    yield from examine_settings()
    database = list(examine_database())
    yield from database
    redis_finding = examine_redis()
    yield redis_finding
    if redis_finding.is_well:
        yield examine_part(WORKER, "celery --app gadget_site.celery worker --pool threads")
        yield examine_part(SWEEPER, "python manage.py sweep")
    if all(finding.is_well for finding in database):
        yield from examine_encryption()
        yield from examine_providers()
    sources = list(examine_tools())
    yield from sources
    if sources[0].is_well:
        yield from examine_plugins()
        if all(finding.is_well for finding in database):
            yield from examine_connections()


def examine_settings() -> Iterator[Finding]:
    """The settings were checked when they were read; here is what may surprise later."""
    if settings.DEBUG:
        yield Finding("settings", "read and sound; DEBUG is on, which is for one person on one machine")
    else:
        yield Finding("settings", "read and sound; DEBUG is off")
    for name in KEY_FILES:
        path = Path(settings.GADGET_DATA_DIR) / name
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
            yield Finding("settings", f"others on this machine can read {str(path)!r}", f"chmod 600 {path}")
    if not os.access(settings.GADGET_DATA_DIR, os.W_OK):
        yield Finding(
            "settings",
            f"the data folder {str(settings.GADGET_DATA_DIR)!r} cannot be written",
            "GADGET_DATA_DIR, or chown",
        )


def examine_database() -> Iterator[Finding]:
    """Reachable, migrated, and durable: a committed intent survives a power cut."""
    try:
        plan = MigrationExecutor(connection).migration_plan(MigrationExecutor(connection).loader.graph.leaf_nodes())
        yield Finding("database", f"{connection.vendor} answers")
        if plan:
            yield Finding("database", f"{len(plan)} migrations are not applied", "python manage.py migrate")
        yield _durability()
    except DatabaseError as error:
        mend = "see that the server runs and that DATABASE_URL names it, its user, password and database"
        yield Finding("database", f"cannot be reached: {str(error).strip()}", mend)


def _durability() -> Finding:
    if connection.vendor == "sqlite":
        journal, synchronous = _value("PRAGMA journal_mode"), _value("PRAGMA synchronous")
        if journal == "wal" and synchronous == SQLITE_FULL:
            return Finding("database", "journal_mode is WAL, synchronous is FULL")
        text = f"journal_mode is {journal}, synchronous is {synchronous}: writes may block or be lost"
        return Finding("database", text, "keep the file on a local disk: WAL does not work on a network share")
    commit = _value("SHOW synchronous_commit")
    if commit == "off":
        return Finding(
            "database", "synchronous_commit is off: a crash may lose a decision", "set synchronous_commit = on"
        )
    return Finding("database", f"synchronous_commit is {commit}")


def _value(statement: str) -> object:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        row = cursor.fetchone()
    return row[0] if row else None


def examine_redis() -> Finding:
    """Reachable, and not throwing messages away."""
    where = "the embedded server" if settings.REDIS_IS_EMBEDDED else "the server of REDIS_URL"
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2) as client:
            policy = client.config_get("maxmemory-policy").get("maxmemory-policy", "noeviction")
    except redis.ResponseError:
        return Finding("redis", f"{where} answers (it hides its configuration)")
    except redis.RedisError as error:
        mend = "make run starts it" if settings.REDIS_IS_EMBEDDED else "see that it runs and that REDIS_URL is right"
        return Finding("redis", f"{where} cannot be reached: {error}", mend)
    if policy != "noeviction":
        return Finding("redis", f"{where} throws keys away when full ({policy})", "set maxmemory-policy noeviction")
    return Finding("redis", f"{where} answers")


def examine_part(part: str, command: str) -> Finding:
    """Whether any worker or sweeper is alive."""
    names = living(part)
    if names:
        return Finding(part, f"{len(names)} alive: {', '.join(names)}")
    return Finding(part, f"no {part} is alive", START + command)


def examine_encryption() -> Iterator[Finding]:
    """Credentials and providers' keys can be read, and none is under an old key any more."""
    found = survey()
    if found.unreadable:
        text = f"none of the keys can read {_some(found.unreadable)}"
        mend = "add the key that made them to GADGET_ENCRYPTION_KEYS, or set them again at /admin/"
        yield Finding("encryption", text, mend)
    if found.outdated:
        text = f"under an older key than the first: {_some(found.outdated)}"
        yield Finding("encryption", text, "python manage.py rotate_keys")
    if not found.unreadable and not found.outdated:
        yield Finding("encryption", "everything is under the first of GADGET_ENCRYPTION_KEYS")


def _some(places: tuple[Place, ...]) -> str:
    named = ", ".join(map(str, places[:MOST_NAMED]))
    return named if len(places) <= MOST_NAMED else f"{named} and {len(places) - MOST_NAMED} more"


def examine_providers() -> Iterator[Finding]:
    """Every active provider is reached with its own settings; keys are never shown."""
    rows = list(ModelProvider.objects.filter(is_active=True).select_related("organization"))
    if not rows:
        yield Finding("provider", "there is none yet", "make one at /admin/, or run `python manage.py demo`")
    for row in rows:
        yield _examine_provider(row)


def _examine_provider(row: ModelProvider) -> Finding:
    name = f"{row.organization.slug}/{row.name}"
    try:
        check_provider(row, PROVIDER_PATIENCE_S)
    except ProviderError as error:
        return Finding("provider", f"{name}: {error}", "see its address, key and model at /admin/")
    return Finding("provider", f"{name} answers")


def examine_tools() -> Iterator[Finding]:
    """Every source of tools loads, and each of their tools starts."""
    try:
        toolbox = installed_toolbox()
    except (ImportError, ValueError, RuntimeError) as error:
        yield Finding("tools", f"the tools cannot be loaded: {error}", "see the named tool or plugin")
        return
    yield Finding("tools", f"{len(toolbox.tools())} tools are loaded")
    for tool, problem in toolbox.not_started.items():
        yield Finding("tools", f"{tool} is switched off, because it did not start: {problem}", "the log says more")


def examine_plugins() -> Iterator[Finding]:
    """Every plugin that `gadget.yaml` names works; one that does not is left out."""
    working, broken = installed_plugins()
    for source in working:
        number = len(source.tools())
        yield Finding("plugins", f"{source.name}: {number} {'tool' if number == 1 else 'tools'}")
    for each in broken:
        yield Finding(
            "plugins",
            f"{each.name} is left out: {each.problem}",
            "mend it, or take it out of tools.plugins in gadget.yaml",
        )


def examine_connections() -> Iterator[Finding]:
    """Every active source that an organisation has connected answers."""
    for source in sources_to_look_at():
        name, asked = f"{source.organization.slug}/{source.name}", ask(source)
        if asked.problem:
            yield Finding("connections", f"{name}: {asked.problem}", "see its settings at /admin/connections/source/")
        else:
            yield Finding("connections", f"{name} answers: {asked.told}")
