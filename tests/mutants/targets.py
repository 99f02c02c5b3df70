"""List the guards that must have a test: the files, and the tests next to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.edits import Edit, find_edits

ROOT = Path(__file__).resolve().parents[2]
ORGANIZATION = "organization"
ACCESS = [
    f"tests/{name}.py"
    for name in (
        "web/test_nothing_crosses",
        "web/test_access",
        "api/test_access",
        "admin/test_scope",
    )
]

FEW = 6


@dataclass(frozen=True)
class Target:
    """Files whose guards are weakened one by one, and the tests that must then fail, quickest
    first.

    Attributes:
        most: the maximum number of edits of each file in a sample.
        only: an edit counts only if the removed part contains this.
    """

    files: Sequence[str]
    tests: Sequence[str]
    most: int
    only: str = ""

    def edits(self) -> list[Mutant]:
        """Return every mutant of these files, starting with the mutants that are in every
        sample."""
        found = []
        for file in self.files:
            edits = [each for each in find_edits((ROOT / file).read_text()) if self._counts(each)]
            found += [Mutant(file, edit, tuple(self.tests)) for edit in edits]
        return sorted(found, key=lambda each: (each.file, each.name not in ALWAYS, each.edit.rank))

    def sample(self) -> list[Mutant]:
        """Return the first few mutants of each file, in an arbitrary but stable order."""
        by_file: dict[str, list[Mutant]] = {}
        for each in self.edits():
            by_file.setdefault(each.file, []).append(each)
        return [each for mutants in by_file.values() for each in mutants[: self.most]]

    def _counts(self, edit: Edit) -> bool:
        return not self.only or leaves_out(edit, self.only)


@dataclass(frozen=True)
class Mutant:
    """One edit of one file, and the tests that must notice it."""

    file: str
    edit: Edit
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name this mutant, for people and for EQUIVALENT."""
        return f"{self.file} {self.edit.name}"


def engine(file: str, tests: str, most: int = 5) -> Target:
    """Name a file of the engine and the tests next to it."""
    return near(f"agents/runs/engine/{file}", tests, most)


def near(file: str, tests: str, most: int = 6) -> Target:
    """Name a file and, by folder and short name, the tests next to it: `approvals: edit expiry api:
    approve`."""
    folder, paths = "", []
    for word in tests.split():
        if word.endswith(":"):
            folder = word.removesuffix(":")
        else:
            paths.append(f"tests/{folder}/test_{word}.py")
    return Target([f"{file}.py"], paths, most)


def _has_lookup(path: Path) -> bool:
    edits = find_edits(path.read_text())
    return any(leaves_out(edit, ORGANIZATION) for edit in edits)


def leaves_out(edit: Edit, text: str) -> bool:
    """Return True if the edit widens a lookup by removing a condition that contains this text."""
    return edit.kind == "condition" and edit.before.count(text) > edit.after.count(text)


def organization_filters(files: str, tests: str) -> Target:
    """Name the lookups within one organization in the matching files. The tests of access come
    last, or first if there are many other tests."""
    named = [path for path in sorted(ROOT.glob(files)) if _has_lookup(path)]
    found = [path for pattern in tests.split() for path in sorted(ROOT.glob(f"tests/{pattern}.py"))]
    others = [path.relative_to(ROOT).as_posix() for path in found]
    paths = dict.fromkeys([*ACCESS, *others] if len(others) > FEW else [*others, *ACCESS])
    return Target(
        [path.relative_to(ROOT).as_posix() for path in named],
        list(paths),
        most=99,
        only=ORGANIZATION,
    )


TARGETS = [
    engine(
        "lease",
        "runs: side_work lease stops worker: sweeper runs: recovery worker: job runs: cancel",
        12,
    ),
    engine(
        "writes",
        "runs: permitted_at_the_start approvals: drift standing_grants: start runs: late_report transactional_writes "
        "approvals: unknown_outcomes late_effects undo_and_grace",
        12,
    ),
    engine(
        "context",
        "runs: bad_requests permitted_at_the_start composition large_results employees: limits_of_grants "
        "runs: delegation",
    ),
    engine("judgment", "runs: judgment permitted_at_the_start employees: limits_over_history"),
    engine("approved_calls", "runs: judgment approvals: drift standing_grants: start"),
    near("agents/runs/call_history", "employees: limits_over_history"),
    engine(
        "passes",
        "runs: duplicates permitted_at_the_start messages_and_continue max_passes_and_closing",
    ),
    engine("results", "runs: conditional_updates approvals: unknown_outcomes runs: late_report"),
    engine("recovery", "runs: recovery approvals: undo_and_grace runs: after_restore"),
    engine("suspension", "runs: conditional_updates approvals: questions runs: delegation"),
    engine("ending", "runs: conditional_updates cancel max_passes_and_closing delegation"),
    engine(
        "next_step",
        "runs: messages_and_continue max_passes_and_closing worker: sweeper runs: stops cancel",
    ),
    engine("execution", "runs: composition permitted_at_the_start parallel_calls"),
    engine(
        "cards", "runs: conditional_updates approvals: carried_requests drift edit undo_and_grace"
    ),
    near("agents/runs/budgets", "employees: budgets", 5),
    engine(
        "requested_calls",
        "runs: duplicates composition parallel_calls standing_grants: preapprovals",
    ),
    near("tools/toolbox/standing_grants", "tools/toolbox: standing_grants", 12),
    near(
        "agents/standing_grants/preapprovals",
        "standing_grants: uses start person_needed preapprovals changes policy: recorded_preapprovals",
        12,
    ),
    near(
        "agents/standing_grants/making", "standing_grants: preapprovals withdrawn web: grants", 12
    ),
    near("agents/standing_grants/account_hash", "standing_grants: account_hash changes"),
    near("agents/standing_grants/changes", "standing_grants: changes person_needed"),
    near("agents/standing_grants/makers", "standing_grants: uses start preapprovals"),
    near("agents/standing_grants/pauses", "web: grant_pauses"),
    *(
        near(
            f"agents/standing_grants/{file}",
            "web: grants grant_suggestions standing_grants: preapprovals",
        )
        for file in ("coverage", "proposals", "past_calls")
    ),
    near(
        "agents/insight/suggestions", "web: grants grant_suggestions standing_grants: preapprovals"
    ),
    *(
        near(f"agents/insight/{file}", "standing_grants: suggested_terms web: grant_suggestions")
        for file in ("narrowest_terms", "value_origins")
    ),
    near("agents/policy/recorded_preapprovals", "policy: recorded_preapprovals"),
    *(
        near(f"agents/policy/{file}", "policy: simulated_rules random_simulated_rules shadow_cards")
        for file in ("recorded_cards", "named_rules", "rule_simulation", "shadow_cards")
    ),
    *(
        near(
            f"agents/policy/{file}",
            "policy: recorded_facts replay simulation simulated_grants past_history shadow statements web: simulator",
        )
        for file in (
            "changed_rules",
            "policy_drafts",
            "past_history",
            "recorded_calls",
            "replay",
            "shadow",
            "simulation",
        )
    ),
    *(
        near(f"agents/{file}", "policy: replay recorded_facts simulation")
        for file in ("runs/snapshots", "policy/typed_changes")
    ),
    *(
        near(f"agents/insight/{file}", "insight: oversight decision_counts web: oversight")
        for file in ("oversight", "trust", "decision_spans", "decision_counts")
    ),
    near(
        "agents/approvals/decisions",
        "approvals: deciding four_eyes_and_roles edit undo_and_grace expiry drift decision_races api: "
        "decide_many approve",
        20,
    ),
    near("tools/toolbox/approval_rules", "tools/toolbox: approval_rules", 12),
    near(
        "tools/toolbox/rulings",
        "tools/toolbox: rulings policy: recorded_rulings approvals: break_glass",
        12,
    ),
    near("agents/approvals/votes", "approvals: votes stored_histories", 12),
    near("agents/approvals/attention", "approvals: attention", 12),
    near("agents/approvals/break_glass", "approvals: break_glass", 12),
    near("agents/deliveries/channels/chat", "notices: chat", 12),
    near("agents/notices/on_screen", "notices: on_screen", 12),
    near("agents/deliveries/channels/webhook", "webhooks: sending", 12),
    *(
        near(
            f"agents/deliveries/{file}",
            "deliveries: engine notices: sending web_push webhooks: sending many_workers changes",
            12,
        )
        for file in ("engine", "receivers", "outboxes", "changes", "channels/__init__")
    ),
    *(
        near(
            f"agents/notices/{file}",
            "notices: audience facts sending pace channels chat web: notices",
        )
        for file in ("audience", "spreading", "sending", "channels", "deliveries")
    ),
    *(
        near(
            f"agents/gateway/{file}",
            "gateway: keys requests open_tickets meanwhile sessions asks asked_effects outcomes receipts levels powers",
            10,
        )
        for file in (
            "keys",
            "sessions",
            "requests",
            "tickets",
            "asks",
            "receipts",
            "redemptions",
            "levels",
            "models",
        )
    ),
    near("agents/gateway/queries", "gateway: keys requests sessions open_tickets progress"),
    near("agents/api/asks", "api: asks gateway: powers"),
    near("agents/api/ask_waiting", "gateway: ask_waiting"),
    *(
        near(
            f"agents/mcp_server/{file}",
            "gateway: call_responses door served_names gateway/live: mcp_server odd_clients tasks",
            10,
        )
        for file in (
            "door",
            "messages",
            "names",
            "callers",
            "tasks",
            "tickets",
            "server",
            "call_responses",
            "results",
        )
    ),
    near(
        "static/clients/gadget_hook",
        "clients: reading table asking check changeable_files gateway/live: hook hook_check",
        20,
    ),
    *(
        near(f"agents/web/views/{file}", f"web: {file} nothing_crosses", 4)
        for file in ("agents", "triggers", "webhooks")
    ),
    near("agents/triggers/queries", "triggers: receiving repeats sending_again"),
    *(
        near(
            f"agents/triggers/{file}",
            "triggers: schemes templates receiving sending_again repeats changes outside_text",
            12,
        )
        for file in ("schemes", "templates", "receiving", "changes")
    ),
    *(
        near(
            f"agents/webhooks/{file}",
            "webhooks: facts reading sending switching_off many_workers changes",
            12,
        )
        for file in ("outbox", "sending", "changes")
    ),
    near("agents/deliveries/models", "platform: migrations"),
    near("agents/webhooks/models", "webhooks: changes"),
    near("agents/readers/reading", "readers: reading webhooks: reading", 12),
    near("agents/readers/holes", "readers: reading", 12),
    near("agents/approvals/own_cards", "approvals: votes deciding four_eyes_and_roles"),
    near(
        "agents/approvals/warnings/marks",
        "approvals: individual_cards standing_grants: person_needed",
    ),
    near("agents/approvals/warnings/card_marks", "approvals: card_marks individual_cards"),
    near("agents/approvals/seen_marks", "approvals: card_marks"),
    near("agents/approvals/requesters", "approvals: requesters four_eyes_and_roles", 12),
    near(
        "agents/approvals/closed_cards",
        "approvals: edit deciding expiry web: late_edit api: approve",
    ),
    near("agents/approvals/questions", "approvals: questions"),
    near("agents/approvals/resolutions", "approvals: unknown_outcomes api: resolve_tool_call"),
    near(
        "agents/worker/sweeper",
        "worker: sweeper lease_watch approvals: expiry worker: schedules_fire runs: delegation lease recovery "
        "approvals: undo_and_grace",
        8,
    ),
    near(
        "agents/runs/queries/due",
        "worker: sweeper approvals: expiry standing_grants: withdrawn answers worker: schedules_fire runs: delegation "
        "stops approvals: undo_and_grace tools/connections: mcp_in_a_run",
        8,
    ),
    near(
        "tools/toolbox/permissions",
        "tools/toolbox: the_gate named_hosts inner_requests tool_promises",
        10,
    ),
    near("tools/toolbox/conditions", "tools/toolbox: conditions the_gate", 10),
    near(
        "tools/toolbox/executor",
        "tools/toolbox: the_executor suspending_tools one_call large_results params_are_checked",
        8,
    ),
    *(
        near(
            f"tools/network/{file}",
            "tools/network: forbidden_addresses redirects limits_of_responses changing_names web_tools tls",
        )
        for file in ("http_client", "addresses", "name_resolution", "urls")
    ),
    near(
        "tools/network/transport",
        "tools/network: changing_names forbidden_addresses limits_of_responses tls tools/toolbox: last_look "
        "providers: private_addresses openai_deadline_and_stop large_answers",
        12,
    ),
    organization_filters("agents/web/views/*.py", "web/test_*"),
    organization_filters("agents/api/*.py", "api/test_*"),
    organization_filters("agents/web/*/*.py", "web/test_* web/test_socket_*"),
    organization_filters("agents/admin/*.py", "admin/test_*"),
    organization_filters("agents/approvals/decisions.py", "approvals/test_deciding"),
    organization_filters("agents/approvals/own_cards.py", "approvals/test_deciding"),
    organization_filters(
        "agents/accounts/audit.py",
        "accounts/test_verify_audit web/test_audit runs/test_events_and_audit",
    ),
    organization_filters("agents/insight/figures.py", "insight/test_figures"),
    organization_filters("agents/insight/metrics.py", "insight/test_metrics"),
    organization_filters(
        "agents/accounts/[im][ne][vm]*s.py",
        "web/test_users accounts/test_who_has_an_account admin/test_members",
    ),
    organization_filters("agents/accounts/membership.py", "api/test_tokens"),
    organization_filters("agents/approvals/questions.py", "approvals/test_questions"),
    organization_filters("agents/approvals/resolutions.py", "approvals/test_unknown_outcomes"),
    organization_filters(
        "agents/runs/actions.py", "runs/test_bad_requests runs/test_cancel api/test_start_run"
    ),
    organization_filters(
        "agents/runs/schedules.py",
        "worker/test_schedules_fire approvals/test_schedule_cards web/test_schedules",
    ),
    organization_filters("agents/runs/stops.py", "runs/test_stops web/test_stops"),
    organization_filters(
        "agents/runs/manual_calls.py", "runs/test_manual_calls web/test_manual_calls"
    ),
    organization_filters(
        "agents/employees/toolboxes.py", "employees/test_credentials connections/test_generations"
    ),
    organization_filters("agents/runs/engine/lease.py", "runs/test_stops"),
    organization_filters("agents/runs/engine/context.py", "runs/test_delegation runs/test_stops"),
    organization_filters(
        "agents/employees/toolboxes.py",
        "connections/test_allowed_hosts connections/test_other_processes connections/test_generations",
    ),
    organization_filters(
        "tools/office/records/*.py",
        "tools/office/test_data_read tools/office/records/test_* web/test_records",
    ),
    organization_filters(
        "tools/schedules/*.py", "approvals/test_schedule_cards web/test_schedules"
    ),
    organization_filters("tools/connections/*.py", "connections/test_*"),
]
"""All code that decides permissions."""

_LATE_RENEWAL = "run.status != RunStatus.RUNNING or run.lease_expires_at is None or run.lease_expires_at >= tx.now"
_OWN_EPOCH = "run.lease_epoch == self.epoch and run.lease_owner == OWNER"
_IS_APPROVED = "STILL_APPROVED.fetch_one(due.card.pk) is None"
ALWAYS = {
    f"agents/runs/engine/writes.py _use_approval: not tx.run.may_start or {_IS_APPROVED} -> (({_IS_APPROVED}))",
    f"agents/runs/engine/lease.py Lease.is_valid_for: {_OWN_EPOCH} -> ((run.lease_owner == OWNER))",
    f"agents/worker/sweeper.py _take_expired: {_LATE_RENEWAL} -> False",
}
"""Mutants that are part of every sample: the last checks before a write, before a takeover and
before a renewal."""
