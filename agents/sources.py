"""Asking an organisation's sources of tools: whether they answer, and what they describe now."""

import logging
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from agents import hints
from agents.engine.connected import reach_for
from agents.engine.credentials import credentials_of
from tools.connections.asking import describe
from tools.connections.changes import Description, Refreshed, keep_description, note_problem
from tools.connections.models import Source, SourceKind
from tools.contract import ToolError

logger = logging.getLogger(__name__)

MOST_NAMED = 5
REFRESH_AFTER = timedelta(hours=1)
"""A server that changes what its tools do is found out after so long, or at its next notice."""


@dataclass(frozen=True)
class Asked:
    """What came of it, in words for an admin; `problem` is empty if the source answered as it should."""

    problem: str = ""
    told: str = ""


def ask(source: Source) -> Asked:
    """Whether it answers; only its state is written."""
    found = _described(source)
    if isinstance(found, str):
        return Asked(found)
    note_problem(source, "")
    return Asked(told=f"It describes {_count(len(found.tools), 'tool')} now. {found.note}".strip())


def refresh(source: Source) -> Asked:
    """Read the description anew and keep it; when that fails, what was read before stays."""
    found = _described(source)
    if isinstance(found, str):
        return Asked(found)
    told = _told(len(found.tools), keep_description(source, found))
    return Asked(told=f"{told} {found.note}".strip())


def refresh_one(source_id: int) -> None:
    """`refresh`, for a source that may be gone or switched off meanwhile."""
    source = Source.objects.filter(pk=source_id, is_active=True).select_related("organization").first()
    if source is not None:
        refresh(source)


def due() -> QuerySet[Source]:
    """MCP servers that were not asked for a while; an API's description is read when an admin says so."""
    servers = Source.objects.filter(is_active=True, kind__in=(SourceKind.MCP_HTTP, SourceKind.MCP_STDIO))
    return servers.filter(Q(checked_at=None) | Q(checked_at__lt=Now() - REFRESH_AFTER))


def refresh_later(source_id: int) -> bool:
    """Let a worker read it; of several sweepers one asks."""
    mine = due().filter(pk=source_id).update(checked_at=Now())
    if mine:
        hints.refresh_source(source_id)
    return bool(mine)


def _described(source: Source) -> Description | str:
    """What it describes, or why that cannot be told."""
    organization = source.organization
    try:
        fields = credentials_of(organization).get(source.credentials_service, {})
        return describe(source, fields, reach_for(organization.pk))
    except ToolError as error:
        problem = error.message
    except (ValueError, TypeError, KeyError, RecursionError):
        logger.exception("source %s of organisation %s", source.name, organization.pk)
        problem = "it could not be read; the log says why"
    note_problem(source, problem)
    return problem


def _told(count: int, refreshed: Refreshed) -> str:
    parts = [f"It describes {_count(count, 'tool')}."]
    for label, names in (("New", refreshed.new), ("Changed", refreshed.changed), ("Gone", refreshed.gone)):
        if names:
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            parts.append(f"{label}: {', '.join(names[:MOST_NAMED])}{more}.")
    if refreshed.left_out:
        where, reason = refreshed.left_out[0]
        parts.append(f"{_count(len(refreshed.left_out), 'operation')} left out, e.g. {where}: {reason}.")
    return " ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
