"""Notes on the card of an ask: the key of the agent that asked, and other asks about the same
effect."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from django.db.models import Q
from django.db.models.functions import Now

from agents.approvals.warnings.card_reading import find_params_marks
from agents.approvals.warnings.marks import Mark
from agents.gateway.asks import MAX_REFUSED
from agents.gateway.models import AgentKey, AgentRun, Ask, RefusedAsk
from agents.gateway.receipts import digest_params
from agents.runs.models import Approval, CallStatus, Origin, Run, ToolCall
from tools.toolbox.asked_actions import find_asked_action

MAX_EARLIER_ASKS = 5
SILENT_AFTER = timedelta(seconds=90)
"""The time without a poll by the agent after which the card reports that the agent is silent; the
hook polls every 25 s."""


@dataclass(frozen=True)
class AskNotes:
    """The notes on the card of an ask.

    Attributes:
        earlier: the newest cards of earlier asks about the same effect.
        refused: asks that were refused because this one is open, the newest for each key, each with
            the marks of its params.
        params_digest: the digest of the params, as in the receipt and the API.
        silent_since: the time of the agent's last poll if the agent no longer waits; None while it
            waits, or once the card is decided.
    """

    ask: Ask
    earlier: list[Approval]
    refused: list[tuple[RefusedAsk, tuple[Mark, ...]]]
    params_digest: str
    silent_since: datetime | None


def load_agent_key(run: Run) -> AgentKey | None:
    """Load the agent key of the run; None, without a query, for an employee's own run."""
    if run.origin not in (Origin.MCP, Origin.ASK):
        return None
    found = AgentRun.objects.select_related("key__membership__user").filter(run=run).first()
    return found.key if found is not None else None


def load_ask_notes(call: ToolCall) -> AskNotes | None:
    """Load the notes on the card of an ask; None, without a query, for the call of a tool."""
    if find_asked_action(call.tool) is None:
        return None
    asks = Ask.objects.select_related("key", "effect").annotate(
        is_silent=Q(last_asked_at__lt=Now() - SILENT_AFTER)
    )
    ask = asks.filter(run_id=call.run_id).first()
    if ask is None:
        return None
    earlier: list[Approval] = []
    if ask.effect_id is not None:
        cards = Approval.objects.filter(run__ask__effect=ask.effect_id, run__ask__pk__lt=ask.pk)
        earlier = list(cards.select_related("decided_by").order_by("-pk")[:MAX_EARLIER_ASKS])
    refused = (
        RefusedAsk.objects.filter(ask=ask)
        .select_related("key")
        .order_by("-pk")[: MAX_REFUSED * MAX_EARLIER_ASKS]
    )
    # Keep each key's newest refusal, so that the refusals of one key do not hide those of another.
    newest = list({one.key_id: one for one in reversed(refused)}.values())[:MAX_EARLIER_ASKS]
    noted = [(one, find_params_marks(call.organization_id, one.params)) for one in newest]
    is_silent = call.status == CallStatus.AWAITING_APPROVAL and ask.is_silent
    since = ask.last_asked_at if is_silent else None
    return AskNotes(ask, earlier, noted, digest_params(call.params), since)


class OfAgents:
    """The part of a card that is about agents elsewhere."""

    run: Run
    call: ToolCall

    @cached_property
    def agent(self) -> AgentKey | None:
        """The key of the external agent; None if an employee made the call."""
        return load_agent_key(self.run)

    @cached_property
    def asked(self) -> AskNotes | None:
        """The notes on an ask; None for the call of a tool."""
        return load_ask_notes(self.call)
