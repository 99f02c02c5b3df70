"""Handle a pass without a usable response (step 5 of a run): count the usage, keep the received
text, and retry or end the run."""

import logging

from agents.providers.base import ProviderError, ProviderStopped, Usage
from agents.providers.unusable_responses import EMPTY_RESPONSE
from agents.runs.budgets import BudgetExhausted
from agents.runs.engine.ending import Ending, end_run
from agents.runs.engine.lease import Lease
from agents.runs.engine.timing import MAX_PROVIDER_TRIES, timing
from agents.runs.engine.transaction import Action, NextStep, Transaction
from agents.runs.engine.usage import STOPPED, UnusableResponse, count_unusable
from agents.runs.model_events import ProviderDelayed
from agents.runs.models import CallStatus, Event, EventType, ExitReason, Run, ToolCall

logger = logging.getLogger(__name__)

_UNUSABLE_RESPONSES = {
    "answer_cut": ExitReason.ANSWER_CUT,
    "answer_filtered": ExitReason.ANSWER_FILTERED,
}
"""The exit reasons for provider errors about a response that arrived but is unusable."""


def handle_missing_response(
    lease: Lease, step: NextStep, failure: ProviderStopped | BudgetExhausted | ProviderError
) -> NextStep:
    """Requeue or end a run whose model gave no usable response; a cancelled run ends as
    cancelled."""
    with lease.transaction() as tx:
        if isinstance(failure, ProviderError):
            logger.warning("run %s: the provider failed: %s", lease.run_id, failure)
        if not isinstance(failure, BudgetExhausted) and failure.usage is not None:
            _count_unusable_response(tx, failure, failure.usage)
        if tx.run.cancel_requested_at is None:
            if isinstance(failure, ProviderStopped):
                tx.requeue()
            elif isinstance(failure, BudgetExhausted):
                text = _find_newest_text(_list_unusable_responses(tx))
                end_run(tx, Ending(ExitReason.BUDGET_EXHAUSTED, text, failure.detail))
            else:
                _retry_or_end(tx, step, failure)
    return tx.next_step


def _count_unusable_response(
    tx: Transaction, failure: ProviderError | ProviderStopped, used: Usage
) -> None:
    """Count the usage of a response that is unusable and so completes no pass, and publish its
    text."""
    if isinstance(failure, ProviderError):
        received = UnusableResponse(
            used, failure.duration_ms, failure.code, failure.message, failure.text
        )
    else:
        received = UnusableResponse(used, failure.duration_ms)
    count_unusable(tx, received)


def _retry_or_end(tx: Transaction, step: NextStep, error: ProviderError) -> None:
    """Schedule a retry after the provider failed, or end the run with a reason for people."""
    run = tx.run
    if step.action == Action.ASK_FOR_ANSWER and run.message_count == run.messages_heard:
        # A closing pass needs no retry: without a text, `end_run` writes an answer from the calls.
        end_run(tx, _build_ending(error.text, error, step.reason))
        return
    earlier = _list_unusable_responses(tx)
    text = error.text or _find_newest_text(earlier)
    if tx.is_late:
        end_run(tx, Ending(ExitReason.DEADLINE, text))
        return
    run.patience_tries += 1
    run.patience_since = run.patience_since or tx.now
    may_retry = (
        run.patience_tries < MAX_PROVIDER_TRIES and tx.now - run.patience_since < timing().patience
    )
    if error.most_tries is not None:
        may_retry = may_retry and len(earlier) + 1 < error.most_tries
    pause = timing().backoff(run.patience_tries, error.retry_after)
    if not (error.transient and may_retry) or pause > timing().patience:
        is_done = error.code == EMPTY_RESPONSE and _has_done_something(run)
        end_run(
            tx,
            _build_ending(
                text, error, ExitReason.FINAL_ANSWER if is_done else ExitReason.PROVIDER_ERROR
            ),
        )
        return
    tx.requeue()
    run.problem = str(error)
    run.next_wake_at = tx.now + pause
    tx.publish(
        ProviderDelayed(error.code, error.message, run.patience_tries, (tx.now + pause).isoformat())
    )


def _build_ending(text: str, error: ProviderError, reason: ExitReason) -> Ending:
    """Build the ending after an error; an interrupted text becomes the run's incomplete answer."""
    if text:
        return Ending(ExitReason.ANSWER_CUT, text, f"The answer is incomplete. {error.message}")
    ended = _UNUSABLE_RESPONSES.get(error.code) if reason == ExitReason.PROVIDER_ERROR else None
    return Ending(ended or reason, problem=error.message if ended else str(error))


def _list_unusable_responses(tx: Transaction) -> list[str]:
    """List the texts of this pass's earlier unusable responses; a text may be empty."""
    events = Event.objects.filter(run_id=tx.run.pk)
    begun = events.filter(type=EventType.PASS_STARTED).order_by("-seq").values("seq")[:1]
    found = events.filter(type=EventType.ANSWER_UNUSABLE, seq__gt=begun).exclude(
        payload__code=STOPPED
    )
    return [text or "" for text in found.order_by("seq").values_list("payload__text", flat=True)]


def _find_newest_text(texts: list[str]) -> str:
    return next((text for text in reversed(texts) if text), "")


def _has_done_something(run: Run) -> bool:
    return ToolCall.objects.filter(run_id=run.pk, status=CallStatus.SUCCEEDED).exists()
