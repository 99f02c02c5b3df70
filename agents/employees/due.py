"""The compiled query for tool sources that must be read."""

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from agents.platform.queries.compiled import compile_ids
from tools.connections.models import Source, SourceKind


def select_due_sources() -> QuerySet[Source]:
    """Select active sources that are due: MCP servers, and sources that were never read and do not
    have a recorded problem.

    The description of an API is read again only when an admin asks for it.
    """
    is_server = Q(kind__in=(SourceKind.MCP_HTTP, SourceKind.MCP_STDIO))
    is_new = Q(refreshed_at=None, problem="")
    return Source.objects.filter(is_server | is_new, is_active=True, due_at__lte=Now()).order_by()


DUE_SOURCES = compile_ids(select_due_sources)
