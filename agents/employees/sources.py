"""Check an organization's tool sources, and read the tools that they describe."""

import logging
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now

from agents.accounts.models import Organization
from agents.accounts.notice_facts import NoticeFact, NoticeKind, tell
from agents.employees.due import select_due_sources
from agents.employees.toolboxes import load_network_access, load_own_credentials
from agents.platform import notify
from agents.platform.bounded_waits import BoundedWait
from agents.platform.database_connections import release_connection
from agents.platform.log_context import log_for_organization
from tools.connections.changes import (
    RefreshResult,
    SourceDescription,
    record_import_log,
    record_problem,
    save_description,
)
from tools.connections.descriptions import FetchLimits, fetch_description
from tools.connections.models import Source, SourceKind
from tools.contract import ErrorCode, ToolError
from tools.contract.outside_text import quote_text

logger = logging.getLogger(__name__)

MAX_NAMED = 5
WORKER_LIMITS = FetchLimits()
REQUEST_LIMITS = FetchLimits(seconds=3.0, document_bytes=1_000_000)
"""The limits that apply while a person waits for a page; sources that need more are read by a
worker."""
OVER_LIMIT_CODES = frozenset({ErrorCode.TIMEOUT, ErrorCode.LIMIT_EXCEEDED})
PRIVATE_HINT = (
    " If this is your server, ask a superuser to tick “Allow private networks”, "
    "or add it to ALLOWED_PRIVATE_HOSTS."
)
REFRESH_AFTER = timedelta(hours=1)
"""The time after which an MCP server is read again."""
SOURCE_WAITS = (BoundedWait("sources", Source.objects.all, "due_at", lambda: REFRESH_AFTER, Now),)
ASK_AGAIN_AFTER = timedelta(minutes=2)
"""The time after which a worker that has not read a source is considered lost."""


@dataclass(frozen=True)
class SourceReport:
    """The result of reading a source, in words for an admin. `problem` is None if the source
    responded properly."""

    problem: str | None = None
    summary: str = ""


def check_source(source: Source, limits: FetchLimits = WORKER_LIMITS) -> SourceReport:
    """Check that a source responds, and record its problem if there is one. Its tools are not
    saved."""
    found = _read_or_record_failure(source, limits)
    if isinstance(found, str):
        return SourceReport(found)
    record_problem(source, "")
    return SourceReport(
        summary=f"{_count_noun(len(found.tools), 'tool')} found. {found.note}".strip()
    )


def refresh_source(source: Source) -> SourceReport:
    """Read a source's description again and save it; if that fails, the saved description stays."""
    found = _read_or_record_failure(source, WORKER_LIMITS)
    Source.objects.filter(pk=source.pk).update(due_at=Now() + REFRESH_AFTER)
    return SourceReport(found) if isinstance(found, str) else _save(source, found)


def refresh_source_or_queue(source: Source) -> SourceReport | None:
    """Refresh a source now if that is quick; otherwise let a worker refresh it, and return None.

    Sources that are programs always go to a worker.
    """
    if source.kind != SourceKind.MCP_STDIO:
        try:
            found = _read_description(source, REQUEST_LIMITS)
        except ToolError as error:
            if error.code not in OVER_LIMIT_CODES:
                return SourceReport(_record_failure(source, error))
        else:
            return _save(source, found)
    Source.objects.filter(pk=source.pk).update(due_at=Now() + ASK_AGAIN_AFTER)
    notify.request_source_refresh(source.pk)
    return None


def refresh_source_by_id(source_id: int) -> None:
    """Refresh a source, unless it has been deleted or deactivated."""
    source = (
        Source.objects.filter(pk=source_id, is_active=True).select_related("organization").first()
    )
    if source is not None:
        refresh_source(source)


def queue_refresh(source_id: int) -> bool:
    """Ask a worker to refresh a source; return False if the source is no longer due, because
    another sweeper has already asked."""
    is_mine = select_due_sources().filter(pk=source_id).update(due_at=Now() + ASK_AGAIN_AFTER)
    if is_mine:
        notify.request_source_refresh(source_id)
    return bool(is_mine)


def _read_or_record_failure(source: Source, limits: FetchLimits) -> SourceDescription | str:
    """Return the source's description, or the reason why it cannot be read."""
    try:
        return _read_description(source, limits)
    except ToolError as error:
        return _record_failure(source, error)


def _read_description(source: Source, limits: FetchLimits) -> SourceDescription:
    """Return the source's description.

    Raises:
        ToolError: the source did not respond properly, or cannot be understood.
    """
    # Read the row again: its newest credentials version selects the current credentials.
    organization = Organization.objects.get(pk=source.organization_id)
    log_for_organization(organization.pk)
    try:
        own = load_own_credentials(organization.pk, organization.credentials_version)
        fields = own.get(source.credentials_service, {})
        network_access = load_network_access(organization.pk)
        release_connection()
        return fetch_description(source, fields, network_access, limits)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        logger.exception("source %s of organization %s", source.name, organization.pk)
        why = "it could not be read; the log says why"
        raise ToolError(ErrorCode.OPERATION_FAILED, why) from error


def _record_failure(source: Source, error: ToolError) -> str:
    """Record the failure as the source's problem; return it in words for an admin."""
    is_private = error.code == ErrorCode.SECURITY_VIOLATION and error.message.endswith(
        "a private address."
    )
    problem = " ".join((error.message, *getattr(error, "__notes__", ()))) + (
        PRIVATE_HINT if is_private else ""
    )
    record_problem(source, problem)
    return problem


def _save(source: Source, found: SourceDescription) -> SourceReport:
    try:
        with transaction.atomic():
            result = save_description(source, found)
            _tell_of_quarantine(source, result)
    except ToolError as error:
        return SourceReport(error.message)
    summary = f"{_summarize(len(found.tools), result)} {found.note}".strip()
    record_import_log(source, summary)
    return SourceReport(summary=summary)


def _tell_of_quarantine(source: Source, result: RefreshResult) -> None:
    """Notify admins of changed tools, which nobody can use until an admin has reviewed them."""
    if result.changed:
        detail = f"{_count_noun(len(result.changed), 'tool')} of {quote_text(source.name)}"
        ids = {"source_id": str(source.pk)}
        tell(NoticeFact(NoticeKind.QUARANTINE, source.organization_id, detail=detail, ids=ids))


def _summarize(count: int, result: RefreshResult) -> str:
    parts = [f"{_count_noun(count, 'tool')} found."]
    for label, names in (
        ("New", result.new),
        ("Changed", result.changed),
        ("Gone", result.gone),
        ("Back", result.back),
        ("New titles", result.retitled),
    ):
        if names:
            more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
            parts.append(f"{label}: {', '.join(map(quote_text, names[:MAX_NAMED]))}{more}.")
    if result.skipped:
        named = "; ".join(
            f"{quote_text(where)}: {reason}" for where, reason in result.skipped[:MAX_NAMED]
        )
        more = (
            f"; and {len(result.skipped) - MAX_NAMED} more"
            if len(result.skipped) > MAX_NAMED
            else ""
        )
        parts.append(f"{_count_noun(len(result.skipped), 'tool')} left out: {named}{more}.")
    return " ".join(parts)


def _count_noun(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
