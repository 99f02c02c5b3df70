"""Edits without any effect that a test could see, each with the reason."""

_OPEN_ONES = "ToolCall.objects.exclude(status__in=TERMINAL_CALLS) -> ToolCall.objects.exclude()"
_DECIDES = (
    "agents/approvals/decisions.py match_undecided: Approval.objects.filter("
    "organization_id=member.organization_id, kind=ApprovalKind.APPROVAL,"
    " status=ApprovalStatus.PENDING, expires_at__gt=Now(), run__cancel_requested_at=None)"
    " -> Approval.objects.filter({}"
    "expires_at__gt=Now(), run__cancel_requested_at=None)"
)
_REDEEMED = (
    "agents/gateway/redemptions.py _start: Approval.objects.filter(_match_usable(), pk=state.card.pk,"
    " status=ApprovalStatus.APPROVED) -> Approval.objects.filter("
)
_STARTED = (
    "agents/gateway/redemptions.py _start: ToolCall.objects.filter(pk=state.call.pk, status=CallStatus.APPROVED,"
    " attempts=0) -> ToolCall.objects.filter(pk=state.call.pk"
)
_CHOSEN_EMPLOYEE = (
    'parse_row_id_or_none(request.POST.get("employee", "")) or 0'
    ' -> ((parse_row_id_or_none(request.POST.get("employee", ""))))'
)
_STAYS_LOCKED = (
    "The card was read and checked in the same transaction, under its run's lock, "
    "which every decision takes."
)
EQUIVALENT: dict[str, str] = {
    "agents/notices/on_screen.py _take_closed: not due.exists() -> False": "It only spares a lock.",
    "agents/notices/on_screen.py _take_closed: first is None -> False": (
        "Another worker has just locked the rows; the thread would log an error and look again."
    ),
    "agents/runs/call_history.py EmployeeCalls._of_organization: "
    "ToolCall.objects.filter(organization_id=self.run.organization_id, tool=tool)"
    " -> ToolCall.objects.filter(tool=tool)": (
        "Employees and runs belong to one organization; the condition lets an index be used."
    ),
    "agents/runs/call_history.py EmployeeCalls._find_counted: runs.filter(organization_id=self.run.organization_id, "
    "status__in=_OPEN) -> runs.filter(status__in=_OPEN)": "The runs are those of one employee; see above.",
    "agents/runs/call_history.py EmployeeCalls._find_counted: runs.filter(organization_id=self.run.organization_id, "
    "status__in=_OPEN) -> runs.filter(organization_id=self.run.organization_id)": (
        "A run that has ended has no open call; the condition lets an index be used."
    ),
    "agents/runs/engine/judgment.py PlannedCalls.compare: plan.error is None and plan.row.tool in self.counted"
    " -> ((plan.error is None))": "A call without such a limit gets the same verdict again, which only takes longer.",
    "agents/runs/call_history.py lock_counts: Grant.objects.filter(employee_id=employee_id, tool__in=tools)"
    " -> Grant.objects.filter(tool__in=tools)": "More rows are locked, which only takes longer.",
    "agents/runs/call_history.py lock_counts: Grant.objects.filter(employee_id=employee_id, tool__in=tools)"
    " -> Grant.objects.filter(employee_id=employee_id)": "More rows are locked, which only takes longer.",
    _DECIDES.format(
        "organization_id=member.organization_id, kind=ApprovalKind.APPROVAL, "
    ): _STAYS_LOCKED,
    _DECIDES.format("kind=ApprovalKind.APPROVAL, status=ApprovalStatus.PENDING, "): (
        "The same transaction has just found the card by its organization."
    ),
    "agents/approvals/decisions.py _find_undone: card.status != ApprovalStatus.SUPERSEDED or not was_theirs"
    ' or decision_id not in ("", card.decision_id)'
    ' -> ((not was_theirs) or (decision_id not in ("", card.decision_id)))': (
        "Only a card that was superseded has a next one; the check only spares a query."
    ),
    "agents/insight/metrics.py _build_state: Run.objects.filter(organization_id__in=ids, status__in=_OPEN)"
    " -> Run.objects.filter(status__in=_OPEN)": "These are all organizations; the condition lets an index be used.",
    **dict.fromkeys(
        (
            f"agents/runs/stops.py {act}: Run.objects.filter(organization_id={whose}) -> Run.objects.filter()"
            for act, whose in (
                ("stop_everything", "member.organization_id"),
                ("release_everything", "member.organization_id"),
                ("apply_to_all", "organization_id"),
            )
        ),
        "Each run is told what holds in its own organization, so to tell more of them changes nothing.",
    ),
    "agents/runs/queries/due.py _select_due_schedules: Schedule.objects.filter(is_free, is_active=True, "
    "next_at__lte=Now(), organization__stopped_at=None)"
    " -> Schedule.objects.filter(is_free, is_active=True, next_at__lte=Now())": (
        "A stopped organization is refused when the run is submitted, and the time then waits."
    ),
    "agents/triggers/receiving.py _start_or_refuse: repeated[0] or 0 -> ((repeated[0]))": (
        "A message whose run was deleted finds none either way."
    ),
    "agents/triggers/receiving.py find_received_message: run.origin != Origin.TRIGGER -> False": (
        "A run of another origin has no message; the check spares a query."
    ),
    "agents/mcp_server/server.py _report_to.report: progress.text or None -> ((progress.text))": (
        "A message that is empty says as little as none."
    ),
    **dict.fromkeys(
        (
            f"agents/mcp_server/server.py _look_up: not ticket.has_ended and wait_s -> {edit}"
            for edit in ("((not ticket.has_ended))", "((wait_s))")
        ),
        "A wait of 0 s, or for a call that has ended, is over at once; the check spares a subscription.",
    ),
    "agents/mcp_server/tasks.py knows_tasks: is_modern and capabilities is not None"
    " and EXTENSION in (capabilities.extensions or {})"
    " -> ((capabilities is not None) and (EXTENSION in (capabilities.extensions or {})))": (
        "A request of an earlier revision carries no capabilities."
    ),
    **dict.fromkeys(
        (
            f"agents/deliveries/receivers.py Receivers.exclude_busy: {edit}"
            for edit in (
                "number >= MAX_AT_ONE_HOST -> number > MAX_AT_ONE_HOST",
                'due.exclude(**{f"{outbox.receiver}_id__in": ids}) -> due.exclude()',
                'due.exclude(**{f"{outbox.host_column}__in": hosts}) -> due.exclude()',
                "hosts and outbox.host_column -> ((outbox.host_column))",
            )
        ),
        "Whether a receiver is busy is looked at again when a message to it begins; the condition spares the lock.",
    ),
    "agents/deliveries/changes.py delete_deliveries: len(found) < at_once -> False": (
        "Without the check, it looks again for what is not there; nothing else changes."
    ),
    "agents/gateway/tickets.py _build_ticket: call.status in TERMINAL_CALLS -> False": (
        "The card of a call that has ended is shown to nobody."
    ),
    "agents/gateway/tickets.py Ticket.result: self.has_ended and self.call.result -> ((self.call.result))": (
        "A call has no result before it has ended."
    ),
    "agents/gateway/sessions.py end_session: AgentRun.objects.filter(session=session).exclude(run__status__in=ENDED)"
    " -> AgentRun.objects.filter(session=session).exclude()": (
        "A run that has ended does not rest, so it stays as it is; the condition spares its lock."
    ),
    "agents/gateway/asks.py _find_repeated: Ask.objects.filter(key=key, run__client_request_id=_name_request(key, "
    "asked)) -> Ask.objects.filter(run__client_request_id=_name_request(key, asked))": (
        "The stored id contains that of the key; the condition lets an index be used."
    ),
    **dict.fromkeys(
        (
            f"agents/gateway/redemptions.py load_states: {rows}.objects.filter(run_id__in=runs)"
            f" -> {rows}.objects.filter()"
            for rows in ("Approval", "ToolCall")
        ),
        "Cards and calls are looked up by run afterwards; the condition only bounds what is read.",
    ),
    **dict.fromkeys(
        (
            f"{_REDEEMED}_match_usable(), pk=state.card.pk)",
            f"{_STARTED}, attempts=0)",
            f"{_STARTED}, status=CallStatus.APPROVED)",
            "agents/gateway/redemptions.py _start: started != 1 -> False",
        ),
        "The state of card and call was looked at in the same transaction, under the lock of their run.",
    ),
    "agents/gateway/receipts.py ensure_current_key: (key := current.first()) is not None -> False": (
        "A second current key cannot be stored, and then the first one is loaded."
    ),
    "agents/approvals/requesters.py _load_edits: Approval.objects.filter("
    "wanted, status=ApprovalStatus.SUPERSEDED, start_after=None)"
    " -> Approval.objects.filter(status=ApprovalStatus.SUPERSEDED, start_after=None)": (
        "What was edited is looked up by call and run afterwards; the condition only bounds what is read."
    ),
    "agents/approvals/requesters.py find_requesters: Message.objects.filter(run_id__in=runs, number__gt=1)"
    " -> Message.objects.filter(run_id__in=runs)": (
        "The first message is the task, by whoever started the run, and that person is named before."
    ),
    "agents/admin/audit_subjects.py describe_last_editor: AuditEntry.objects.filter("
    "organization_id=get_organization_id(row), subject=format_subject(row)) -> "
    "AuditEntry.objects.filter(subject=format_subject(row))": (
        "A subject names a row by its id, so no other organization has entries about it."
    ),
    "agents/worker/sweeper.py _read_promptly: _refuse_if_late(began) -> pass": (
        "SQLite's readers wait for nobody; the tests notice it on PostgreSQL."
    ),
    "tools/toolbox/rulings.py store_rule: rule.level and rule.level.value -> ((rule.level))": (
        "A level is a text, and is stored as the same text."
    ),
    "agents/approvals/requesters.py _add_schedules: not ids -> False": "This only spares a query.",
    "agents/accounts/audit.py _load_end: AuditEntry.objects.filter(organization_id=organization_id)"
    " -> AuditEntry.objects.filter()": (
        "A chain without its head is reported as faulty, however far it is read."
    ),
    "agents/runs/queries/due.py _select_overdue_runs:"
    " Run.objects.filter(IS_UNFINISHED, status__in=(RunStatus.QUEUED, RunStatus.WAITING))"
    " -> Run.objects.filter(IS_UNFINISHED)": (
        "Each run is looked at once more under its lock; the condition lets an index be used."
    ),
    "agents/worker/sweeper.py _hint: free.filter(status=RunStatus.QUEUED) -> free.filter()": (
        "Nobody reads the time of a hint of a run that is no longer queued."
    ),
    "agents/standing_grants/preapprovals.py end_grants: grants.filter(IN_FORCE) -> grants.filter()": (
        "Each is looked at once more by its own update; the condition only spares these."
    ),
    "agents/standing_grants/preapprovals.py reserve_uses: not wanted -> False": (
        "This only spares queries for no standing grant."
    ),
    f"agents/runs/queries/due.py _select_orphaned_runs: {_OPEN_ONES}": (
        "A parked run always has an open call; the condition only leads the database to the index of these."
    ),
    f"agents/runs/queries/due.py _select_answered_calls: {_OPEN_ONES}": (
        "A suspended call is open anyway; the condition only leads the database to the index of these."
    ),
    "agents/triggers/receiving.py _start_or_refuse: ReceivedMessage.objects.filter(trigger=trigger, key=key,"
    " status=ReceivedStatus.STARTED) -> ReceivedMessage.objects.filter(trigger=trigger, key=key)": (
        "A message that started no run names none to answer with; the condition lets an index be used."
    ),
    "agents/api/ask_waiting.py _find_undecided: state is not None"
    " and state.call.status == CallStatus.AWAITING_APPROVAL -> ((state is not None))": (
        "A wait for what is decided ends at once; the condition spares starting one."
    ),
    "agents/api/ask_waiting.py _load_own: key is None or found is None -> False": (
        "Without a key no ask is found, and the path was matched before."
    ),
    f"agents/web/views/agents.py agents_page: {_CHOSEN_EMPLOYEE}": "No employee has the id None, either.",
    f"agents/web/views/triggers.py _read_terms: {_CHOSEN_EMPLOYEE}": "No employee has the id None, either.",
    "agents/web/views/agents.py ask_list: "
    "RefusedAsk.objects.filter(ask__in=page.rows) -> RefusedAsk.objects.filter()": (
        "The page shows those of its own asks; the condition spares reading all others."
    ),
    "agents/web/views/agents.py _render: "
    "AgentKey.usable().filter(employee__organization_id=member.organization_id) -> AgentKey.usable().filter()": (
        "The page shows the organization's own keys; the condition spares reading the ids of all others."
    ),
}
"""Mutants without any effect that a test could see, each with the reason."""
