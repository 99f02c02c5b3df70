"""The checks of `manage.py doctor`: each finding says that all is well, or what is wrong and how to
fix it."""

from __future__ import annotations

from collections.abc import Iterator

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from agents.accounts.models import AuditEntry
from agents.employees.models import ModelProvider
from agents.employees.provider_settings import check_provider
from agents.employees.sources import check_source
from agents.employees.toolboxes import get_installed_plugins, get_installed_toolbox
from agents.platform import signatures
from agents.platform.database_server import try_connecting
from agents.platform.key_rotation import EncryptedValue, survey_keys
from agents.platform.liveness import SWEEPER, WORKER, Presence, load_presence
from agents.platform.redis_client import connect_redis
from agents.platform.schema_version import WrongSchemaError, check_schema, list_unknown_migrations
from agents.providers.base import ProviderError
from gadget_site.management.address_checks import check_addresses
from gadget_site.management.findings import Finding
from gadget_site.management.host_checks import (
    check_demo_accounts,
    check_folder,
    check_identity,
    check_key_files,
    check_secret_key,
    check_writing,
)
from gadget_site.management.notice_checks import check_notices
from tools.connections.changes import list_active_sources

SQLITE_FULL = 2
PROVIDER_PATIENCE_S = 10.0
MAX_NAMED = 5
MOST_SLOTS = 0.9
CLIENT_CONNECTIONS = """
    SELECT count(*), count(*) FILTER (WHERE application_name = 'gadget') FROM pg_stat_activity
    WHERE coalesce(backend_type, 'client backend') = 'client backend'
"""
"""Counts client connections. Processes without a `backend_type` are counted too, because an
unprivileged user cannot see this value for other users' processes."""
WITH_EVERYTHING = "start everything with `make run`, or only this process: "
ALONE = "start it with your process manager: "


def check_installation() -> Iterator[Finding]:
    """Yield all findings, in the order in which to fix them; an unreachable service is tried only
    once."""
    yield from check_settings()
    yield from check_addresses()
    yield from check_folder()
    yield from check_key_files()
    presence = load_presence()
    database = list(check_database(presence))
    yield from database
    redis_finding = check_redis()
    yield redis_finding
    if redis_finding.is_well:
        yield check_process(
            WORKER, presence, "celery --app gadget_site.celery worker --pool threads"
        )
        yield from check_lost_workers(presence)
        yield check_process(SWEEPER, presence, "python manage.py sweep")
    if all(finding.is_well for finding in database):
        yield from check_writing()
        yield from check_demo_accounts()
        yield from check_identity()
        if redis_finding.is_well:
            yield from check_secret_key()
        yield from check_encryption()
        yield check_audit()
        yield from check_providers()
        yield from check_notices()
    sources = list(check_tools())
    yield from sources
    if sources[0].is_well:
        yield from check_plugins()
        if all(finding.is_well for finding in database):
            yield from check_connections()


def check_settings() -> Iterator[Finding]:
    """Report the state of DEBUG, and credentials that are not used because a variable
    is not set."""
    if settings.DEBUG:
        yield Finding("settings", "valid; DEBUG is on, which suits one person on one machine")
    else:
        yield Finding("settings", "valid; DEBUG is off")
    for service, variables in settings.GADGET_CONFIG.unset.items():
        lacking = f"the credentials of {service} in gadget.yaml are not used: {', '.join(variables)} is not set"
        yield Finding("settings", lacking, "set it, or remove these credentials from the file")


def check_database(presence: Presence) -> Iterator[Finding]:
    """Check that the database is reachable, migrated, durable (a commit survives a power cut), and
    has enough connections."""
    try:
        plan = MigrationExecutor(connection).migration_plan(
            MigrationExecutor(connection).loader.graph.leaf_nodes()
        )
        yield Finding("database", f"{connection.vendor} responds")
        yield from check_schema_version()
        if plan:
            yield Finding(
                "database", f"{len(plan)} migrations are not applied", "python manage.py migrate"
            )
        yield _check_durability()
        yield from check_capacity(presence)
    except DatabaseError as error:
        fix = "check that the server runs, and the address, user, password and database in DATABASE_URL"
        yield Finding("database", f"cannot be reached: {_describe_failure(error)}", fix)


def _describe_failure(error: DatabaseError) -> str:
    """Connect once more and return the server's error message, or the error's own text if this
    attempt succeeds. The connection pool's error says only that it did not get a connection in
    time."""
    refusal = try_connecting()
    return refusal.words if refusal else str(error).strip()


def check_schema_version() -> Iterator[Finding]:
    """Check that this code may run on the database in its current state."""
    try:
        check_schema()
    except WrongSchemaError as error:
        yield Finding(
            "database", error.fault.removesuffix("."), error.fix[0].lower() + error.fix[1:-1]
        )
        return
    if newer := list_unknown_migrations():
        text = f"a newer version migrated it ({newer[0]}), and this older version can still run beside it"
        yield Finding("database", text)


def _check_durability() -> Finding:
    if connection.vendor == "sqlite":
        journal, synchronous = (
            _query_value("PRAGMA journal_mode"),
            _query_value("PRAGMA synchronous"),
        )
        if journal == "wal" and synchronous == SQLITE_FULL:
            return Finding("database", "journal_mode is WAL, synchronous is FULL")
        text = (
            f"journal_mode is {journal}, synchronous is {synchronous}: writes may block or be lost"
        )
        return Finding(
            "database", text, "keep the file on a local disk: WAL does not work on a network share"
        )
    commit = _query_value("SHOW synchronous_commit")
    if commit == "off":
        return Finding(
            "database",
            "synchronous_commit is off: a crash may lose a decision",
            "set synchronous_commit = on",
        )
    return Finding("database", f"synchronous_commit is {commit}")


def _query_value(statement: str) -> object:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        row = cursor.fetchone()
    return row[0] if row else None


def check_redis() -> Finding:
    """Check that Redis is reachable and does not drop messages."""
    where = "the embedded server" if settings.REDIS_IS_EMBEDDED else "the server of REDIS_URL"
    try:
        with connect_redis() as client:
            policy = client.config_get("maxmemory-policy").get("maxmemory-policy", "noeviction")
    except redis.ResponseError:
        return Finding("redis", f"{where} responds (it hides its configuration)")
    except redis.RedisError as error:
        fix = (
            "`make run` starts it"
            if settings.REDIS_IS_EMBEDDED
            else "check that it runs and that REDIS_URL is right"
        )
        return Finding("redis", f"{where} cannot be reached: {error}", fix)
    if policy != "noeviction":
        return Finding(
            "redis", f"{where} drops keys when full ({policy})", "set maxmemory-policy noeviction"
        )
    return Finding("redis", f"{where} responds")


def check_process(kind: str, presence: Presence, command: str) -> Finding:
    """Check that at least one process of this kind is running."""
    if names := presence.names.get(kind):
        return Finding(kind, f"{len(names)} running: {', '.join(names)}")
    return Finding(
        kind,
        f"no {kind} is running",
        (WITH_EVERYTHING if settings.REDIS_IS_EMBEDDED else ALONE) + command,
    )


def check_lost_workers(presence: Presence) -> Iterator[Finding]:
    """Report workers that vanished in the last ten minutes without a clean shutdown, while others
    still run."""
    alive, seen = presence.workers_alive or 0, presence.workers_seen or 0
    if 0 < alive < seen:
        text = f"{seen - alive} of {seen} workers vanished in the last ten minutes"
        yield Finding(WORKER, text, "read their last log lines and restart them")


def check_capacity(presence: Presence) -> Iterator[Finding]:
    """Check that PostgreSQL allows all connections that the processes together may open."""
    if connection.vendor != "postgresql":
        return
    pool = int(connection.settings_dict["OPTIONS"]["pool"]["max_size"])
    processes = _count_processes(presence)
    most, reserved = (
        _query_value("SHOW max_connections"),
        _query_value("SHOW superuser_reserved_connections"),
    )
    allowed = int(str(most)) - int(str(reserved))
    needed = f"{processes} processes * {pool} connections (DATABASE_POOL) = {processes * pool}"
    text = f"{needed}, the server allows {allowed}"
    if processes * pool <= allowed:
        yield Finding("database", text)
    else:
        yield Finding("database", text, "raise PostgreSQL's max_connections or lower DATABASE_POOL")
    yield check_slots(allowed, (processes + 1) * pool)  # this command also has a pool


def check_slots(allowed: int, ours_at_most: int) -> Finding:
    """Check that connection slots are free, and that none are occupied by dead connections of
    Gadget."""
    with connection.cursor() as cursor:
        cursor.execute(CLIENT_CONNECTIONS)
        used, ours = cursor.fetchone()
    text = f"{used} of {allowed} connection slots are used, {ours} of them by Gadget"
    if ours > ours_at_most:
        text = f"{text}, whose processes can hold at most {ours_at_most}: the other connections are dead"
        return Finding(
            "database",
            text,
            "set tcp_keepalives_idle = 10 on the server, or in the pooler before it",
        )
    if used > allowed * MOST_SLOTS:
        return Finding(
            "database",
            text,
            "end other programs' connections, or raise PostgreSQL's max_connections",
        )
    return Finding("database", text)


def _count_processes(presence: Presence) -> int:
    """Count the web process, the workers and the sweepers. Count the workers and sweepers that run,
    or those that `up` would start if there are more of them."""
    workers, sweepers = (len(presence.names.get(kind, ())) for kind in (WORKER, SWEEPER))
    return 1 + max(workers, settings.GADGET_WORKERS) + max(sweepers, 1)


def check_encryption() -> Iterator[Finding]:
    """Check that all credentials and provider keys can be decrypted, and are encrypted with the
    first key."""
    found = survey_keys()
    if found.unreadable:
        text = f"no key can decrypt {_name_some(found.unreadable)}"
        fix = "add the missing key to GADGET_ENCRYPTION_KEYS, or enter the values again at /admin/"
        yield Finding("encryption", text, fix)
    if found.outdated:
        text = f"encrypted with an older key: {_name_some(found.outdated)}"
        yield Finding("encryption", text, "python manage.py rotate_keys")
    if not found.unreadable and not found.outdated:
        yield Finding(
            "encryption", "everything is encrypted with the first of GADGET_ENCRYPTION_KEYS"
        )


def check_audit() -> Finding:
    """Check that every key that signed the audit is configured; `verify_audit` checks the
    signatures themselves."""
    key_ids = AuditEntry.objects.order_by().values_list("key_id", flat=True).distinct()
    if missing := sorted(key_id for key_id in key_ids if not signatures.is_known(key_id)):
        text = f"entries are signed with the key {', '.join(missing)}, which GADGET_AUDIT_KEYS does not hold"
        return Finding("audit", text, "add that key to GADGET_AUDIT_KEYS, after the first one")
    return Finding("audit", "GADGET_AUDIT_KEYS holds every key that signed an entry")


def _name_some(places: tuple[EncryptedValue, ...]) -> str:
    named = ", ".join(map(str, places[:MAX_NAMED]))
    return named if len(places) <= MAX_NAMED else f"{named} and {len(places) - MAX_NAMED} more"


def check_providers() -> Iterator[Finding]:
    """Check that every active provider responds; keys are never shown."""
    rows = list(ModelProvider.objects.filter(is_active=True).select_related("organization"))
    if not rows:
        with_demo = ", or run `python manage.py demo`" if settings.DEBUG else ""
        yield Finding("provider", "there is no provider yet", f"add one at /admin/{with_demo}")
    for row in rows:
        yield _check_one_provider(row)


def _check_one_provider(row: ModelProvider) -> Finding:
    name = f"{row.organization.slug}/{row.name}"
    try:
        warning = check_provider(row, PROVIDER_PATIENCE_S)
    except ProviderError as error:
        return Finding(
            "provider", f"{name}: {error}", "check its address, key and model at /admin/"
        )
    if warning:
        return Finding(
            "provider",
            f"{name} responds. {warning}",
            "start its server with a template that supports tools",
        )
    return Finding("provider", f"{name} responds")


def check_tools() -> Iterator[Finding]:
    """Check that every source of tools loads, and that each tool starts."""
    try:
        toolbox = get_installed_toolbox()
    except (ImportError, ValueError, RuntimeError) as error:
        yield Finding(
            "tools", f"the tools cannot be loaded: {error}", "check the named tool or plugin"
        )
        return
    yield Finding("tools", f"{len(toolbox.tools())} tools are loaded")
    for problem in toolbox.left_out:
        yield Finding(
            "tools",
            f"left out: {problem}",
            "correct the tool, then restart web, workers and sweeper",
        )
    for tool, problem in toolbox.not_started.items():
        yield Finding(
            "tools", f"{tool} is off, because it did not start: {problem}", "the log says more"
        )


def check_plugins() -> Iterator[Finding]:
    """Check the office plugin, and every plugin that `gadget.yaml` names."""
    working, broken = get_installed_plugins()
    for source in working:
        number = len(source.tools())
        yield Finding("plugins", f"{source.name}: {number} {'tool' if number == 1 else 'tools'}")
    for each in broken:
        yield Finding(
            "plugins",
            f"{each.name} is not loaded: {each.problem}",
            "fix it, or remove it from tools.plugins in gadget.yaml",
        )


def check_connections() -> Iterator[Finding]:
    """Check that every active source of an organization responds."""
    for source in list_active_sources():
        name, result = f"{source.organization.slug}/{source.name}", check_source(source)
        if result.problem:
            fix = "check its settings at /admin/connections/source/"
            yield Finding("connections", f"{name}: {result.problem}", fix)
        else:
            yield Finding("connections", f"{name} responds: {result.summary}")
