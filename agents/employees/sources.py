"""Asking an organisation's sources of tools: whether they answer, and what they describe now."""

import logging
from dataclasses import dataclass
from datetime import timedelta

from django.db.models.functions import Now

from agents.accounts.models import Organization
from agents.employees.toolboxes import own_credentials, reach_for
from agents.platform import notify
from agents.platform.database_condition import release_connection
from agents.platform.queries.sweeps import due_sources
from tools.connections.asking import Patience, describe
from tools.connections.changes import Description, Refreshed, keep_description, note_problem, note_told
from tools.connections.models import Source, SourceKind
from tools.contract import ErrorCode, ToolError

logger = logging.getLogger(__name__)

MOST_NAMED = 5
PATIENT = Patience()
IN_A_REQUEST = Patience(seconds=3.0, document_bytes=1_000_000)
"""So long may somebody who looks at a page have to wait; what takes longer is a worker's."""
MORE_PATIENCE = frozenset({ErrorCode.TIMEOUT, ErrorCode.LIMIT_EXCEEDED})
PRIVATE_HINT = (
    " If this is your server, ask a superuser to tick “It may be in a private network”, "
    "or add it to ALLOWED_PRIVATE_HOSTS."
)
REFRESH_AFTER = timedelta(hours=1)
"""A server that changes what its tools do is found out after so long."""
ASK_AGAIN_AFTER = timedelta(minutes=2)
"""A worker that was told to read a source, and has not done so by then, is lost."""


@dataclass(frozen=True)
class Asked:
    """What came of it, in words for an admin; `problem` is empty if the source answered as it should."""

    problem: str = ""
    told: str = ""


def ask(source: Source, patience: Patience = PATIENT) -> Asked:
    """Whether it answers; only its state is written."""
    found = _described(source, patience)
    if isinstance(found, str):
        return Asked(found)
    note_problem(source, "")
    return Asked(told=f"It describes {_count(len(found.tools), 'tool')} now. {found.note}".strip())


def refresh(source: Source) -> Asked:
    """Read the description anew and keep it; when that fails, what was read before stays."""
    found = _described(source, PATIENT)
    Source.objects.filter(pk=source.pk).update(due_at=Now() + REFRESH_AFTER)
    return Asked(found) if isinstance(found, str) else _kept(source, found)


def refresh_soon(source: Source) -> Asked | None:
    """`refresh`, if that takes a moment; else None, and a worker does it. Programs are always a worker's."""
    if source.kind != SourceKind.MCP_STDIO:
        try:
            found = _asked(source, IN_A_REQUEST)
        except ToolError as error:
            if error.code not in MORE_PATIENCE:
                return Asked(_failed(source, error))
        else:
            return Asked(found) if isinstance(found, str) else _kept(source, found)
    Source.objects.filter(pk=source.pk).update(due_at=Now() + ASK_AGAIN_AFTER)
    notify.request_source_refresh(source.pk)
    return None


def refresh_one(source_id: int) -> None:
    """`refresh`, for a source that may be gone or switched off meanwhile."""
    source = Source.objects.filter(pk=source_id, is_active=True).select_related("organization").first()
    if source is not None:
        refresh(source)


def refresh_later(source_id: int) -> bool:
    """Let a worker read it; of several sweepers one asks, and asks again if nothing came of it."""
    mine = due_sources().filter(pk=source_id).update(due_at=Now() + ASK_AGAIN_AFTER)
    if mine:
        notify.request_source_refresh(source_id)
    return bool(mine)


def _described(source: Source, patience: Patience) -> Description | str:
    """What it describes, or why that cannot be told."""
    try:
        return _asked(source, patience)
    except ToolError as error:
        return _failed(source, error)


def _asked(source: Source, patience: Patience) -> Description | str:
    """The same; a ToolError is the caller's."""
    organization = Organization.objects.get(pk=source.organization_id)  # with its newest versions
    try:
        own = own_credentials(organization.pk, organization.credentials_version)
        fields = own.get(source.credentials_service, {})
        reach = reach_for(organization.pk)
        release_connection()
        return describe(source, fields, reach, patience)
    except (ValueError, TypeError, KeyError, RecursionError):
        logger.exception("source %s of organisation %s", source.name, organization.pk)
        problem = "it could not be read; the log says why"
    note_problem(source, problem)
    return problem


def _failed(source: Source, error: ToolError) -> str:
    """Its words for an admin, written down."""
    is_private = error.code == ErrorCode.SECURITY_VIOLATION and error.message.endswith("a private address.")
    problem = " ".join((error.message, *getattr(error, "__notes__", ()))) + (PRIVATE_HINT if is_private else "")
    note_problem(source, problem)
    return problem


def _kept(source: Source, found: Description) -> Asked:
    try:
        refreshed = keep_description(source, found)
    except ToolError as error:
        return Asked(error.message)
    told = f"{_told(len(found.tools), refreshed)} {found.note}".strip()
    note_told(source, told)
    return Asked(told=told)


def _told(count: int, refreshed: Refreshed) -> str:
    parts = [f"It describes {_count(count, 'tool')}."]
    for label, names in (
        ("New", refreshed.new),
        ("Changed", refreshed.changed),
        ("Gone", refreshed.gone),
        ("Back", refreshed.back),
    ):
        if names:
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            parts.append(f"{label}: {', '.join(names[:MOST_NAMED])}{more}.")
    if refreshed.left_out:
        where, reason = refreshed.left_out[0]
        parts.append(f"{_count(len(refreshed.left_out), 'operation')} left out, e.g. {where}: {reason}.")
    return " ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
