"""What drafts have written, to be read where it was written: in the run's panel, as far as a line can be long."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Substr

from agents.platform.row_ids import row_id
from agents.runs.models import Event, EventType, ToolCall
from tools.contract import Level
from tools.records.models import Draft

LONGEST = 20_000


@dataclass(frozen=True)
class Document:
    """A text in Markdown, without what is beyond 20,000 characters; `draft_id` is 0 if it is not stored as a draft."""

    text: str
    is_cut: bool
    draft_id: int = 0


def documents_of(run_id: int, events: Iterable[Event], calls: dict[int, ToolCall]) -> dict[int, Document]:
    """By call: the text that each successful draft among the results has made.

    Costs no query where the event has it all, else one for stored drafts and one for texts too long for events.
    """
    found, stored, cut = dict[int, Document](), dict[int, int](), list[int]()
    for event in events:
        if event.type != EventType.TOOL_RESULT or not event.payload["result"].get("success"):
            continue
        result, call_id = event.payload["result"], int(event.payload["call_id"])
        if calls[call_id].level != Level.DRAFT.value:
            continue
        if draft_id := _draft_in(result):
            stored[call_id] = draft_id
        elif result.get("markdown"):
            found[call_id] = Document(str(result["markdown"]), is_cut=False)
        elif result.get("truncated"):
            cut.append(call_id)
    return found | _stored(run_id, stored) | _cut(cut)


def _draft_in(result: dict[str, Any]) -> int:
    data = result.get("data")
    try:
        return row_id(data["draft_id"]) if isinstance(data, dict) and "draft_id" in data else 0
    except ValueError:
        return 0


def _stored(run_id: int, wanted: dict[int, int]) -> dict[int, Document]:
    """Only drafts of this very run: a result may name any."""
    if not wanted:
        return {}
    rows = Draft.objects.filter(pk__in=wanted.values(), run_id=str(run_id)).order_by()
    texts = dict(rows.values_list("pk", Substr(F("body"), Value(1), Value(LONGEST + 1))))
    return {call_id: _document(texts[pk], pk) for call_id, pk in wanted.items() if pk in texts}


def _cut(wanted: list[int]) -> dict[int, Document]:
    if not wanted:
        return {}
    text = Substr(KeyTextTransform("markdown", "result"), Value(1), Value(LONGEST + 1))
    rows = ToolCall.objects.filter(pk__in=wanted).order_by().values_list("pk", text)
    return {pk: _document(written) for pk, written in rows if written}


def _document(text: str, draft_id: int = 0) -> Document:
    return Document(text[:LONGEST], len(text) > LONGEST, draft_id)
