"""How calls enter the database, whoever asks for them: with a status, their cards, and their lines in the panel."""

from agents.engine.cards import new_card, publish_card
from agents.engine.outcomes import publish_rejection
from agents.engine.planning import Planned, too_many
from agents.engine.starting import publish_start, set_executing
from agents.engine.timing import OPEN_CARDS
from agents.events import Recording
from agents.models import Approval, ApprovalStatus, CallStatus, EventType, ToolCall
from agents.statements import insert
from tools.contract import ToolResult, format_error
from tools.toolbox.permissions import Decision

CARDS_ARE_FULL = f"At most {OPEN_CARDS} cards may wait at a time."


def insert_calls(record: Recording, planned: list[Planned], slots: int) -> list[ToolCall]:
    """Insert the calls with what people see of them; those that need nobody start at once, as many as have a slot.

    Returns the started ones.
    """
    if not planned:
        return []
    _limit_cards(record.run.pk, planned)
    for plan in planned:
        _set_status(record, plan)
    started = [plan.row for plan in planned if plan.row.status == CallStatus.READY][:slots]
    for row in started:
        set_executing(record, row)
    insert([plan.row for plan in planned if plan.row.duplicate_of is None])
    _insert_doubles([plan.row for plan in planned if plan.row.duplicate_of is not None])
    _insert_cards(record, [plan for plan in planned if plan.row.status == CallStatus.AWAITING_APPROVAL])
    for plan in planned:
        if plan.row.status == CallStatus.REJECTED and plan.error is not None:
            publish_rejection(record, plan.row, plan.error)
        elif plan.row.status == CallStatus.DUPLICATE:
            record.publish(
                EventType.TOOL_SKIPPED,
                call_id=str(plan.row.pk),
                tool=plan.row.tool,
                duplicate_of=str(plan.row.duplicate_of_id),
            )
    for row in started:
        publish_start(record, row)
    return started


def _limit_cards(run_id: int, planned: list[Planned]) -> None:
    asking = [plan for plan in planned if plan.decision == Decision.ASK and plan.row.duplicate_of is None]
    if not asking:
        return
    room = OPEN_CARDS - Approval.objects.filter(run_id=run_id, status=ApprovalStatus.PENDING).count()
    for plan in asking[max(room, 0) :]:
        plan.error = too_many(CARDS_ARE_FULL)


def _set_status(record: Recording, plan: Planned) -> None:
    row = plan.row
    if row.duplicate_of is not None:
        row.status, row.finished_at = CallStatus.DUPLICATE, record.now
        row.finished_seq = record.run.next_event_seq
    elif plan.error is not None:
        row.status, row.finished_at = CallStatus.REJECTED, record.now
        row.finished_seq = record.run.next_event_seq
        row.result = ToolResult.failed(plan.error).as_json()
        row.content = format_error(plan.error)
    else:
        row.status = CallStatus.READY if plan.decision == Decision.AUTO else CallStatus.AWAITING_APPROVAL


def _insert_doubles(rows: list[ToolCall]) -> None:
    """After the calls that they repeat, whose ids they name."""
    for row in rows:
        row.duplicate_of_id = row.duplicate_of.pk if row.duplicate_of else None
    insert(rows)


def _insert_cards(record: Recording, planned: list[Planned]) -> None:
    days = record.run.organization.card_days if planned else 0
    cards = [new_card(plan.row, plan.effect, plan.row.why, days) for plan in planned if plan.effect is not None]
    Approval.objects.bulk_create(cards)
    for plan, card in zip(planned, cards, strict=True):
        publish_card(record, plan.row, card, days)
