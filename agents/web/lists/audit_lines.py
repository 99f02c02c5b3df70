"""The audit in words: the actor of each entry, the action, and its subject with a link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.urls import reverse

from agents.accounts.models import AuditEntry, Organization
from agents.approvals.warnings.card_marks import load_marks, select_for_marks
from agents.approvals.warnings.marks import end_with_marks
from agents.employees.models import Employee
from agents.employees.toolboxes import load_toolbox
from agents.platform.row_ids import parse_row_id
from agents.runs.models import Approval, Run, ToolCall
from agents.web.panel.slots import build_line_url
from agents.web.text.safe_text import quote_outside
from tools.contract.sentences import quote_names
from tools.registries.records import RECORD_STORE

WORK_ACTIONS = {
    "card_approved": "approved a card",
    "glass_broken": "approved a card alone under break-glass",
    "card_denied": "denied a card",
    "card_answered": "answered a question",
    "card_dismissed": "dismissed a card that asked for what was already done",
    "card_edited": "edited a card",
    "vote_cast": "approved a card that needs more people",
    "vote_withdrawn": "withdrew their approval of a card",
    "card_expired": "let a card expire",
    "decision_undone": "undid an approval",
    "bulk_undone": "undid a bulk approval",
    "standing_grant_made": "made a standing grant",
    "standing_grant_revoked": "revoked a standing grant",
    "standing_grant_ended": "ended a standing grant",
    "call_started": "started a call",
    "outcome_unknown": "recorded an unknown outcome",
    "outcome_resolved": "resolved an unknown outcome",
    "late_report": "received a late report of a call",
    "late_effect": "reported that a call had happened, although it was marked as not done",
    "late_effect_acknowledged": "acknowledged a late effect",
    "run_cancelled": "cancelled a run",
    "stopped": "stopped",
    "released": "resumed",
    "records_imported": "imported records",
    "file_uploaded": "uploaded a file",
    "file_deleted": "deleted a file or folder",
    "schedule_created": "created a schedule",
    "schedule_paused": "paused a schedule",
    "schedule_resumed": "resumed a schedule",
    "schedule_cancelled": "cancelled a schedule",
    "schedule_switched_off": "switched off a schedule",
    "schedule_skipped": "skipped a scheduled run",
    "schedule_corrected": "corrected the next run time of a schedule",
    "demo_built": "created the demo",
    "backup_restored": "restored a backup",
    "restored_limit_confirmed": "confirmed a restored limit:",
}
PEOPLE_ACTIONS = {
    "invitation_made": "invited a person",
    "invitation_revoked": "revoked an invitation",
    "invitation_accepted": "accepted an invitation",
    "password_link_made": "created a password link",
    "password_reset": "set a new password",
    "password_changed": "changed their own password",
    "membership_added": "added a member",
    "membership_changed": "changed a member's role",
    "membership_deleted": "removed a member",
    "notice_choices_changed": "changed their notices",
    "preferences_changed": "changed their preferences",
    "channel_added": "added an address for notices",
    "channel_confirmed": "confirmed an address for notices",
    "channel_removed": "removed an address for notices",
    "token_created": "created an API token",
    "api_token_added": "added an API token",
    "api_token_changed": "revoked an API token",
}
_ROW_KINDS = (
    "employee",
    "model_provider",
    "organization",
    "tool_rule",
    "approval_rule",
    "approver_group",
    "deputy",
    "credential",
    "record",
    "record_list",
    "list_entry",
    "draft",
)
CONFIGURATION_ACTIONS = {
    f"{row}_{verb}": f"{verb} {row.replace('_', ' ')}"
    for row in _ROW_KINDS
    for verb in ("added", "changed", "deleted")
}
POLICY_ACTIONS = {
    "policy_draft_saved": "saved a policy draft",
    "policy_draft_deleted": "deleted a policy draft",
    "policy_shadow_started": "started the shadow mode of a policy draft",
    "policy_shadow_stopped": "stopped the shadow mode of a policy draft",
}
GATE_ACTIONS = {
    "agent_key_created": "created an agent key",
    "agent_key_revoked": "revoked an agent key",
    "action_level_set": "set the level of an action",
    "receipt_redeemed": "redeemed a receipt",
    "outcome_reported": "reported an outcome",
    "outcome_reported_late": "reported an outcome late",
    "ask_cancelled": "cancelled an ask",
    "ticket_cancelled": "cancelled a ticket",
    "trigger_created": "created a trigger",
    "trigger_changed": "changed a trigger",
    "trigger_switched_on": "switched on a trigger",
    "trigger_switched_off": "switched off a trigger",
    "trigger_secret_changed": "changed the secret of a trigger",
    "trigger_removed": "removed a trigger",
    "webhook_created": "created a webhook",
    "webhook_changed": "changed a webhook",
    "webhook_switched_on": "switched on a webhook",
    "webhook_switched_off": "switched off a webhook",
    "webhook_secret_changed": "changed the secret of a webhook",
    "webhook_delivery_repeated": "sent a delivery of a webhook again",
    "webhook_removed": "removed a webhook",
}
ACTION_GROUPS = (
    ("Work", WORK_ACTIONS),
    ("Agents and systems elsewhere", GATE_ACTIONS),
    ("People", PEOPLE_ACTIONS),
    ("Configuration", CONFIGURATION_ACTIONS | POLICY_ACTIONS),
)
ACTION_TEXTS = (
    WORK_ACTIONS
    | GATE_ACTIONS
    | PEOPLE_ACTIONS
    | POLICY_ACTIONS
    | {action: text.replace(" ", " the ", 1) for action, text in CONFIGURATION_ACTIONS.items()}
)
ACTOR_KINDS = ("user", "employee")
MAX_LABEL_LENGTH = 160


@dataclass(frozen=True)
class Subject:
    """The subject of an action; `link` is empty if the subject has no page."""

    label: str
    link: str = ""


@dataclass(frozen=True)
class AuditLine:
    """One entry of the audit as the page shows it."""

    entry: AuditEntry
    actor: str
    actor_kind: str
    action: str
    subject: Subject


def describe_entries(organization_id: int, entries: Iterable[AuditEntry]) -> list[AuditLine]:
    """Describe the entries, with at most one query for each kind of subject."""
    entries = list(entries)
    subjects = _load_subjects(organization_id, entries)
    return [_describe_entry(entry, subjects) for entry in entries]


def _describe_entry(entry: AuditEntry, subjects: dict[str, Subject]) -> AuditLine:
    kind, _, name = entry.actor.partition(":")
    is_known = kind in ACTOR_KINDS and bool(name)
    return AuditLine(
        entry=entry,
        actor=name if is_known else f"{kind.replace('_', ' ')} {name}".strip(),
        actor_kind=kind if is_known else "",
        action=ACTION_TEXTS.get(entry.action, entry.action.replace("_", " ")),
        subject=subjects.get(entry.subject) or Subject(_name_subject(entry)),
    )


def _name_subject(entry: AuditEntry) -> str:
    """Name a subject without a page: its kind and number, and the name in the entry."""
    kind, _, number = entry.subject.partition(":")
    payload = entry.payload if isinstance(entry.payload, dict) else {}
    name = payload.get("row") or payload.get("note") or payload.get("name")
    is_name = kind in ("action", "tool")
    label = f"{kind.replace('_', ' ')} {quote_outside(number) if is_name else number}".strip()
    return f"{label}: {quote_outside(str(name))}" if name else label


def _load_subjects(organization_id: int, entries: list[AuditEntry]) -> dict[str, Subject]:
    wanted: dict[str, set[int]] = defaultdict(set)
    for entry in entries:
        kind, _, number = entry.subject.partition(":")
        if kind in _FINDERS:
            try:
                wanted[kind].add(parse_row_id(number))
            except ValueError:
                continue
    rows = {
        f"{kind}:{pk}": subject
        for kind, ids in wanted.items()
        for pk, subject in _FINDERS[kind](organization_id, ids).items()
    }
    return rows | _name_tools(organization_id, entries)


def _name_tools(organization_id: int, entries: list[AuditEntry]) -> dict[str, Subject]:
    """Name the tools among the subjects by their titles; a tool that is no longer installed is left
    out."""
    names = {
        entry.subject.removeprefix("tool:")
        for entry in entries
        if entry.subject.startswith("tool:")
    }
    tools = {name: load_toolbox(organization_id).get_tool(name) for name in names}
    return {
        f"tool:{name}": Subject(f"tool {tool.title}")
        for name, tool in tools.items()
        if tool is not None
    }


def _find_runs(organization_id: int, ids: set[int]) -> dict[int, Subject]:
    rows = Run.objects.filter(organization_id=organization_id, pk__in=ids).values_list(
        "pk", "title", "task"
    )
    return {
        pk: Subject(
            f"run {pk}: {quote_outside(title or task, MAX_LABEL_LENGTH)}",
            reverse("run", args=(pk,)),
        )
        for pk, title, task in rows
    }


def _find_cards(organization_id: int, ids: set[int]) -> dict[int, Subject]:
    rows = Approval.objects.filter(organization_id=organization_id, pk__in=ids)
    cards = list(select_for_marks(rows))
    marks = load_marks(cards)
    plain = {
        card.pk: _shorten(quote_names(card.sentence)) + end_with_marks(marks.get(card.pk, ()))
        for card in cards
    }
    return {
        pk: Subject(f"card {pk}: {sentence}", reverse("approval", args=(pk,)))
        for pk, sentence in plain.items()
    }


def _find_calls(organization_id: int, ids: set[int]) -> dict[int, Subject]:
    rows = ToolCall.objects.filter(organization_id=organization_id, pk__in=ids).values_list(
        "pk", "tool", "run_id"
    )
    return {
        pk: Subject(f"{quote_outside(tool)} in run {run}", build_line_url(run, pk))
        for pk, tool, run in rows
    }


def _find_employees(organization_id: int, ids: set[int]) -> dict[int, Subject]:
    rows = Employee.objects.filter(organization_id=organization_id, pk__in=ids).values_list(
        "pk", "name"
    )
    return {pk: Subject(f"employee {name}", reverse("employee", args=(pk,))) for pk, name in rows}


def _find_records(organization_id: int, ids: set[int]) -> dict[int, Subject]:
    rows = (
        RECORD_STORE.get().get_records(organization_id).filter(pk__in=ids).values_list("pk", "name")
    )
    return {pk: Subject(f"record {name}", reverse("record", args=(pk,))) for pk, name in rows}


def _find_organizations(organization_id: int, ids: set[int]) -> dict[int, Subject]:
    """Name the organization itself, which has no page."""
    rows = Organization.objects.filter(pk=organization_id, pk__in=ids).values_list("pk", "name")
    return {pk: Subject(f"organization {name}") for pk, name in rows}


def _shorten(text: str) -> str:
    line = " ".join(text[: 4 * MAX_LABEL_LENGTH].split())
    return line if len(line) <= MAX_LABEL_LENGTH else line[: MAX_LABEL_LENGTH - 1] + "…"


_FINDERS: dict[str, Callable[[int, set[int]], dict[int, Subject]]] = {
    "run": _find_runs,
    "approval": _find_cards,
    "tool_call": _find_calls,
    "employee": _find_employees,
    "organization": _find_organizations,
    "record": _find_records,
}
