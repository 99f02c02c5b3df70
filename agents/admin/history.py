"""What happened: runs, messages, passes, calls, approvals, events and the audit, to be looked at and never changed."""

from __future__ import annotations

from django.contrib import admin

from agents.accounts.models import AuditEntry
from agents.approvals.models import Approval
from agents.runs.models import Event, Message, Pass, Run, ToolCall

from .scope import ReadOnlyAdmin, ScopedRelatedFilter


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Runs, newest first; `?employee__id__exact=` narrows the list to one employee."""

    list_display = ("id", "__str__", "employee", "organization", "status", "exit_reason", "created_at")
    list_display_links = ("id", "__str__")
    list_filter = ("status", "exit_reason", ("employee", ScopedRelatedFilter), ("organization", ScopedRelatedFilter))
    list_select_related = ("employee", "organization")
    search_fields = ("=id",)
    search_help_text = "The number of a run"


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    """What people said to runs."""

    list_display = ("id", "run", "number", "author", "created_at")
    list_select_related = ("run", "author")
    search_fields = ("=run__id",)
    search_help_text = "The number of a run"


@admin.register(Pass)
class PassAdmin(ReadOnlyAdmin):
    """What the model answered."""

    list_display = ("id", "run", "number", "closing", "input_tokens", "output_tokens", "duration_ms", "created_at")
    list_select_related = ("run",)
    search_fields = ("=run__id",)
    search_help_text = "The number of a run"


@admin.register(ToolCall)
class ToolCallAdmin(ReadOnlyAdmin):
    """Tool calls with their params and results."""

    list_display = ("id", "run", "tool", "level", "status", "attempts", "duration_ms", "created_at")
    list_filter = ("status", "level", ("organization", ScopedRelatedFilter))
    list_select_related = ("run",)
    search_fields = ("=run__id", "=tool")
    search_help_text = "The number of a run, or the exact name of a tool"


@admin.register(Approval)
class ApprovalAdmin(ReadOnlyAdmin):
    """Cards and how they were decided; they are decided in the inbox, never here."""

    list_display = ("id", "sentence", "run", "kind", "status", "decided_by", "requested_at", "decided_at")
    list_display_links = ("id", "sentence")
    list_filter = ("status", "kind", ("organization", ScopedRelatedFilter))
    list_select_related = ("run", "decided_by")
    search_fields = ("=run__id",)
    search_help_text = "The number of a run"


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """The lines of the activity panels."""

    list_display = ("id", "run", "seq", "type", "created_at")
    list_filter = ("type",)
    list_select_related = ("run",)
    search_fields = ("=run__id",)
    search_help_text = "The number of a run"


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """The audit chain; `manage.py verify_audit` checks its signatures."""

    list_display = ("id", "organization", "seq", "actor", "action", "subject", "at")
    list_filter = (("organization", ScopedRelatedFilter),)
    list_select_related = ("organization",)
    search_fields = ("=actor", "=action")
    search_help_text = "The exact name of a person or of an action"
