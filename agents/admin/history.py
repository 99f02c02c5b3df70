"""Read-only pages of the history: runs, messages, passes, calls, approvals, events and the
audit."""

from __future__ import annotations

from django.contrib import admin

from agents.accounts.models import AuditEntry
from agents.admin.scope import ReadOnlyAdmin, ScopedRelatedFilter
from agents.runs.models import Approval, Event, Message, Pass, Run, ToolCall


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Runs, newest first; `?employee__id__exact=` filters by employee."""

    list_display = (
        "id",
        "__str__",
        "employee",
        "organization",
        "status",
        "exit_reason",
        "created_at",
    )
    list_display_links = ("id", "__str__")
    list_filter = (
        "status",
        "exit_reason",
        ("employee", ScopedRelatedFilter),
        ("organization", ScopedRelatedFilter),
    )
    list_select_related = ("employee", "organization")
    search_fields = ("=id",)
    search_help_text = "Search by run number"


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    """Messages from people to runs."""

    list_display = ("id", "run", "number", "author", "created_at")
    list_select_related = ("run", "author")
    search_fields = ("=run__id",)
    search_help_text = "Search by run number"


@admin.register(Pass)
class PassAdmin(ReadOnlyAdmin):
    """Passes: each model call with its usage."""

    list_display = (
        "id",
        "run",
        "number",
        "closing",
        "input_tokens",
        "output_tokens",
        "duration_ms",
        "created_at",
    )
    list_select_related = ("run",)
    search_fields = ("=run__id",)
    search_help_text = "Search by run number"


@admin.register(ToolCall)
class ToolCallAdmin(ReadOnlyAdmin):
    """Tool calls with their params and results."""

    list_display = ("id", "run", "tool", "level", "status", "attempts", "duration_ms", "created_at")
    list_filter = ("status", "level", ("organization", ScopedRelatedFilter))
    list_select_related = ("run",)
    search_fields = ("=run__id", "=tool")
    search_help_text = "Search by run number or exact tool name"


@admin.register(Approval)
class ApprovalAdmin(ReadOnlyAdmin):
    """Cards and their decisions; people decide in the inbox, never here."""

    list_display = (
        "id",
        "sentence",
        "run",
        "kind",
        "status",
        "decided_by",
        "requested_at",
        "decided_at",
    )
    list_display_links = ("id", "sentence")
    list_filter = ("status", "kind", ("organization", ScopedRelatedFilter))
    list_select_related = ("run", "decided_by")
    search_fields = ("=run__id",)
    search_help_text = "Search by run number"


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """Events: the lines of the activity panels."""

    list_display = ("id", "run", "seq", "type", "created_at")
    list_filter = ("type",)
    list_select_related = ("run",)
    search_fields = ("=run__id",)
    search_help_text = "Search by run number"


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """Entries of the audit chain; `manage.py verify_audit` checks their signatures."""

    list_display = ("id", "organization", "seq", "actor", "action", "subject", "at")
    list_filter = (("organization", ScopedRelatedFilter),)
    list_select_related = ("organization",)
    search_fields = ("=actor", "=action")
    search_help_text = "Search by the exact name of a person or an action"
