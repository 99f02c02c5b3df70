"""Texts that calls have drafted, shown in the run's panel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Substr

from agents.platform.row_ids import parse_row_id
from agents.runs.models import Event, EventType, ToolCall
from tools.contract import Level
from tools.registries.records import RECORD_STORE

MAX_LENGTH = 20_000


@dataclass(frozen=True)
class Document:
    """A text in Markdown, cut after 20,000 characters; `draft_id` is 0 if it is not stored as a
    draft."""

    text: str
    is_cut: bool
    draft_id: int = 0


def load_documents(
    run_id: int, events: Iterable[Event], calls: dict[int, ToolCall]
) -> dict[int, Document]:
    """Load the text of each successful draft among the results, by call.

    A text that is in its event does not need a query. Stored drafts need one query, and texts that
    are too long for events need another.
    """
    complete, stored, cut = dict[int, Document](), dict[int, int](), list[int]()
    for event in events:
        if event.type != EventType.TOOL_RESULT or not event.payload["result"].get("success"):
            continue
        result, call_id = event.payload["result"], int(event.payload["call_id"])
        if calls[call_id].level != Level.DRAFT.value:
            continue
        if draft_id := _parse_draft_id(result):
            stored[call_id] = draft_id
        elif result.get("markdown"):
            complete[call_id] = Document(str(result["markdown"]), is_cut=False)
        elif result.get("truncated"):
            cut.append(call_id)
    organization_id = next((call.organization_id for call in calls.values()), 0)
    return complete | _load_stored((organization_id, run_id), stored) | _load_from_calls(cut)


def _parse_draft_id(result: dict[str, Any]) -> int:
    data = result.get("data")
    try:
        return (
            parse_row_id(data["draft_id"]) if isinstance(data, dict) and "draft_id" in data else 0
        )
    except ValueError:
        return 0


def _load_stored(of_run: tuple[int, int], draft_ids: dict[int, int]) -> dict[int, Document]:
    if not draft_ids:
        return {}
    # Only drafts of this run, because a result may contain any id.
    organization_id, run_id = of_run
    drafts = RECORD_STORE.get().get_drafts(organization_id)
    rows = drafts.filter(pk__in=draft_ids.values(), run_id=str(run_id)).order_by()
    texts = dict(rows.values_list("pk", Substr(F("body"), Value(1), Value(MAX_LENGTH + 1))))
    return {
        call_id: _build_document(texts[pk], pk) for call_id, pk in draft_ids.items() if pk in texts
    }


def _load_from_calls(call_ids: list[int]) -> dict[int, Document]:
    if not call_ids:
        return {}
    text = Substr(KeyTextTransform("markdown", "result"), Value(1), Value(MAX_LENGTH + 1))
    rows = ToolCall.objects.filter(pk__in=call_ids).order_by().values_list("pk", text)
    return {pk: _build_document(text) for pk, text in rows if text}


def _build_document(text: str, draft_id: int = 0) -> Document:
    return Document(text[:MAX_LENGTH], len(text) > MAX_LENGTH, draft_id)
