"""The compiled query for people's earlier decisions about cards of one shape."""

from agents.platform.queries.compiled import PLACEHOLDERS, CompiledQuery, IdRow
from agents.runs.models import APPROVED_STATES, Approval, ApprovalStatus

MAX_EARLIER = 5
_DECIDED = (ApprovalStatus.DENIED, *APPROVED_STATES)
EARLIER_DECISIONS = CompiledQuery(
    IdRow,
    lambda organization_id, shape: Approval.objects.filter(
        organization_id=organization_id, shape=shape, decided_at__isnull=False, status__in=_DECIDED
    ).order_by("-decided_at", "-pk")[:MAX_EARLIER],
    placeholders=(PLACEHOLDERS[0], "the shape of a card"),
)
