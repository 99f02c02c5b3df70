"""Where the values of a run's calls come from: what people typed, and the results of all calls of the task.

A task's runs are searched together: those of colleagues to whom it was delegated, and the one that delegated it. So a
value from outside stays one on its way through a colleague's task or answer. What an employee stored keeps its mark as
an `OutsideValue`.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import TextField
from django.db.models.functions import Cast

from agents.accounts.models import AuditEntry
from agents.runs.models import Message, Origin, OutsideValue, Run, ToolCall
from tools.contract import Tool
from tools.schedules.models import Schedule
from tools.toolbox import Toolbox
from tools.toolbox.provenance import (
    Provenance,
    SeenIn,
    SeenText,
    Sighting,
    SourceIndex,
    carries_own_data,
    list_offered,
    trace,
)

MAX_SEARCHED = 20_000_000
"""Characters of results that are searched, the newest first."""
ASK = "employee.askHuman"
"""The tool whose result is a person's answer."""
_METADATA = '"metadata"'
"""The last key of a stored result; nothing after it was shown to the model."""


class _CallTexts(NamedTuple):
    """A call with its params and its result, as JSON."""

    pk: int
    run_id: int
    tool: str
    model_params: Any
    params_text: str
    result_text: str


@dataclass(frozen=True)
class RunValues:
    """The values that a run has seen, loaded when they are first searched.

    Attributes:
        edited: params that a person has just changed; they count as typed.
    """

    run: Run
    toolbox: Toolbox
    edited: tuple[str, ...] = ()

    def trace(self, tool: Tool, params: Mapping[str, Any]) -> Provenance:
        """Find the origin of each value in the params of a call."""
        named = tool.destination_params | tool.address_params
        found = trace(self._index, params, list_offered(tool.schema), named)
        keys = found.list_own_keys()
        return found.mark_stored(self._load_stored(keys)) if keys else found

    def find_own_data(self, tool: Tool, params: Mapping[str, Any]) -> list[str]:
        """List the values from the organization's own data that a call would carry to the outside."""
        return carries_own_data(self._index, params, list_offered(tool.schema))

    @property
    def is_partial(self) -> bool:
        """True if older results were left out because there are too many."""
        return self._index.is_partial

    @cached_property
    def _index(self) -> SourceIndex:
        if self.run.pk is None or self.run.origin == Origin.MANUAL:
            return SourceIndex([])  # a person typed every value of a call by hand
        root = _load_first_run(self.run)
        runs = _list_family(root)
        texts, is_partial = _load_call_texts(root.organization_id, runs)
        uploaded = self._find_uploaded(texts)
        results = [self._read_result(call, uploaded) for call in texts]
        is_typed = not (root.origin == Origin.SCHEDULE and _is_made_by_employee(root))
        task = [] if is_typed else [SeenText(SeenIn.OWN, root.task, title="the schedule", run_id=root.pk)]
        typed = _load_typed(runs, texts, has_typed_task=is_typed)
        people = [SeenText(SeenIn.PERSON, text) for text in (*self.edited, *typed)]
        return SourceIndex([*people, *task, *filter(None, results)], is_partial=is_partial)

    def _read_result(self, call: _CallTexts, uploaded: frozenset[str]) -> SeenText | None:
        """Return the result as a text to search; None if people typed it."""
        tool = self.toolbox.get_tool(call.tool)
        if call.tool == ASK:
            return None
        is_outside = tool is None or tool.has_outside_results
        is_own_data = tool is not None and not (tool.open_world or tool.is_from_outside)
        if is_outside and is_own_data and (path := _get_path(call)) is not None:
            is_outside = path in uploaded
        return SeenText(
            SeenIn.OUTSIDE if is_outside else SeenIn.OWN,
            call.result_text.rpartition(_METADATA)[0] or call.result_text,
            is_json=True,
            request=call.params_text,
            is_own_data=is_own_data,
            tool=call.tool,
            title=tool.title if tool else call.tool,
            call_id=call.pk,
            run_id=call.run_id,
        )

    def _find_uploaded(self, texts: Iterable[_CallTexts]) -> frozenset[str]:
        """Return those of the files read in these calls that a person has uploaded."""
        paths = {path for call in texts if self._reads_files(call) and (path := _get_path(call)) is not None}
        if not paths:
            return frozenset()
        uploads = AuditEntry.objects.filter(
            organization_id=self.run.organization_id,
            action="file_uploaded",
            subject__in=[f"file:{path}"[:200] for path in paths],
        )
        known = {subject.removeprefix("file:") for subject in uploads.values_list("subject", flat=True)}
        return frozenset(path for path in paths if f"file:{path}"[:200].removeprefix("file:") in known)

    def _reads_files(self, call: _CallTexts) -> bool:
        tool = self.toolbox.get_tool(call.tool)
        return tool is not None and tool.returns_outside_text and not tool.is_from_outside

    def _load_stored(self, keys: list[str]) -> dict[str, Sighting]:
        rows = OutsideValue.objects.filter(organization_id=self.run.organization_id, key__in=keys)
        return {
            row.key: Sighting(
                "",
                row.param,
                "",
                SeenIn.OUTSIDE,
                tool=row.call.tool,
                title=row.title,
                call_id=row.call_id,
                run_id=row.call.run_id,
            )
            for row in rows.select_related("call").only("key", "param", "title", "call__tool", "call__run_id")
        }


def remember_outside_values(call: ToolCall, toolbox: Toolbox) -> None:
    """Keep the marks of the values from outside that a call has just stored in the organization's own data."""
    tool = toolbox.get_tool(call.tool)
    if not call.provenance or tool is None or tool.is_from_outside or not tool.has_side_effects:
        return
    values = {
        key: OutsideValue(
            organization_id=call.organization_id, key=key, param=found.param[:200], title=found.title[:200], call=call
        )
        for found in Provenance.from_json(call.provenance).list_outside()
        for key in found.keys
    }
    if values:
        OutsideValue.objects.bulk_create(values.values(), ignore_conflicts=True)


def list_edited(before: Any, after: Any) -> tuple[str, ...]:
    """List, as one text each, the values of changed params that the earlier params do not have."""
    known = set(_list_values(before))
    return tuple(value for value in _list_values(after) if value not in known)


def _list_values(node: Any) -> Iterator[str]:
    waiting = [node]
    while waiting:
        here = waiting.pop()
        if isinstance(here, Mapping):
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here
        elif here is not None and not isinstance(here, bool):
            yield str(here)


def _load_first_run(run: Run) -> Run:
    """Return the run with which the task began: the run itself, unless a colleague delegated it."""
    while run.parent_id is not None:
        run = Run.objects.only("organization_id", "parent_id", "origin", "client_request_id", "task").get(
            pk=run.parent_id
        )
    return run


def _list_family(root: Run) -> list[int]:
    """List the ids of this run and of all runs below it."""
    found, level = [root.pk], [root.pk]
    while level:
        level = list(Run.objects.filter(parent_id__in=level).order_by("pk").values_list("pk", flat=True))
        found += level
    return found


def _load_call_texts(organization_id: int, runs: list[int]) -> tuple[list[_CallTexts], bool]:
    """Load the results of these runs, oldest first; return True with them if older ones had to be left out."""
    calls = ToolCall.objects.filter(organization_id=organization_id, run_id__in=runs, result__isnull=False)
    calls = calls.annotate(params_text=Cast("params", TextField()), result_text=Cast("result", TextField()))
    found: list[_CallTexts] = []
    room = MAX_SEARCHED
    for values in calls.order_by("-pk").values_list(*_CallTexts._fields).iterator(chunk_size=100):
        call = _CallTexts(*values)
        room -= len(call.result_text)
        if room < 0:
            return found[::-1], True
        found.append(call)
    return found[::-1], False


def _load_typed(runs: list[int], texts: Iterable[_CallTexts], *, has_typed_task: bool) -> Iterator[str]:
    """Yield what people typed in these runs: tasks, messages, answers to questions, and params that they changed."""
    messages = Message.objects.filter(run_id__in=runs, author__isnull=False)
    if not has_typed_task:
        messages = messages.exclude(run_id=runs[0], number=1)
    yield from messages.order_by("pk").values_list("text", flat=True)
    for call in texts:
        if call.tool == ASK:
            yield from _read_answer(call)
        if call.model_params is not None:
            yield from list_edited(call.model_params, json.loads(call.params_text))


def _is_made_by_employee(run: Run) -> bool:
    """Return True if an employee wrote the task of the schedule that started the run."""
    numbers = [int(part) for part in run.client_request_id.split(":")[1:2] if part.isdecimal()]
    made = Schedule.objects.filter(organization_id=run.organization_id, pk__in=numbers)
    return made.exclude(made_in_run="").exists()


def _read_answer(call: _CallTexts) -> Iterator[str]:
    """Yield a person's answer, unless it is one of the answers that the employee itself offered."""
    data = (json.loads(call.result_text) or {}).get("data") or {}
    answer, choices = str(data.get("answer", "")), json.loads(call.params_text).get("choices") or []
    if answer and answer not in map(str, choices):
        yield answer


def _get_path(call: _CallTexts) -> str | None:
    path = json.loads(call.params_text).get("path")
    return unicodedata.normalize("NFC", path) if isinstance(path, str) else None
