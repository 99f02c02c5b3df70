"""Apply the rules, standing grants and limits of a policy draft while recorded calls are judged
again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

from django.db.models import QuerySet

from agents.policy.past_history import PastHistory
from agents.policy.policy_drafts import ChangeKind, PolicyChange, apply_changes
from agents.policy.recorded_calls import CallRow
from agents.runs.models import ToolCall
from agents.standing_grants.past_calls import GrantMatcher
from agents.standing_grants.proposals import find_tool
from tools.toolbox.conditions import Condition
from tools.toolbox.history import ToolHistory
from tools.toolbox.snapshots import RecordedRules


class ChangedRules:
    """The changes of a policy draft as a `RuleChange`. A scope consists of the indices of the
    changes that concern an employee."""

    def __init__(
        self, organization_id: int, changes: Iterable[PolicyChange], judged: QuerySet[ToolCall]
    ) -> None:
        """Prepare the changes for judging these calls of the organization."""
        self._changes = tuple(changes)
        self._grants = _find_grants(organization_id, self._changes)
        self._history = PastHistory(organization_id, judged, _list_limits(self._changes))

    def find_scope(self, employee_id: int) -> Hashable:
        """Return the indices of the changes that concern the employee."""
        return tuple(
            number for number, change in enumerate(self._changes) if change.concerns(employee_id)
        )

    def apply(self, rules: RecordedRules, scope: Hashable) -> RecordedRules:
        """Return the rules with the changes of this scope."""
        assert isinstance(scope, tuple)
        return apply_changes(rules, (self._changes[number] for number in scope))

    def find_grants(self, tool: str, scope: Hashable) -> Sequence[GrantMatcher]:
        """Return the proposed standing grants for the tool in this scope."""
        assert isinstance(scope, tuple)
        return [grant for number, grant in self._grants.get(tool, ()) if number in scope]

    def rebuild_history(self, row: CallRow) -> ToolHistory | None:
        """Return the history before this call if a proposed limit on its tool needs it; None
        otherwise."""
        return self._history.look_back(row)


def _list_limits(changes: Iterable[PolicyChange]) -> list[tuple[str, Condition]]:
    return [(change.tool, change.condition) for change in changes if change.condition is not None]


def _find_grants(
    organization_id: int, changes: Sequence[PolicyChange]
) -> dict[str, list[tuple[int, GrantMatcher]]]:
    """Return the proposed standing grants by tool, each with the number of its change.

    A grant whose tool is no longer installed is left out.
    """
    found: dict[str, list[tuple[int, GrantMatcher]]] = defaultdict(list)
    for number, change in enumerate(changes):
        if change.kind is ChangeKind.STANDING_GRANT:
            tool = find_tool(organization_id, change.tool, change.employee_id)
            if tool is not None:
                found[change.tool].append(
                    (number, GrantMatcher.of(change.as_proposed_grant(), tool))
                )
    return dict(found)
