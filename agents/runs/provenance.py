"""Trace the values in a run's calls to their origins: texts that people typed, and results of all
calls of the task.

All runs of a task are searched together, including delegated ones. So a value from outside is still
recognized after it has passed through a colleague's task or answer. A value that an employee stored
is recognized by its `OutsideValue`.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from agents.accounts.models import AuditEntry
from agents.employees.toolboxes import load_network_access
from agents.runs.models import Message, Origin, OutsideValue, Run, ToolCall
from agents.runs.origins import ORIGINS
from agents.runs.result_texts import METADATA, has_content, read_result
from tools.contract import Tool, ToolError, name_tool
from tools.contract.lookups import has_own_fields, is_same_source
from tools.contract.param_naming import ParamNaming
from tools.schedules.models import Schedule
from tools.toolbox import Toolbox
from tools.toolbox.facts import find_hosts
from tools.toolbox.provenance import (
    FieldValues,
    OwnData,
    Provenance,
    SeenIn,
    SeenText,
    Sighting,
    SourceIndex,
    find_own_data,
    find_unseen_names,
    has_unseen_text,
    list_offered,
    make_key,
    mark_fields,
    trace,
)

MAX_SEARCHED = 20_000_000
"""The maximum number of characters of results that are searched, newest results first."""
ASK = "employee.askHuman"
"""The tool whose result is a person's answer."""
WRITE_FILE = "files.write"
"""The tool whose texts may contain more values than are searched."""
_WITHOUT_OWN_VALUES = frozenset({ASK, "employee.delegate", "results.read"})
"""Tools whose results need no search, because they repeat typed text, a colleague's results or an
earlier result."""
_ROWS_AT_ONCE = 500


class _CallTexts(NamedTuple):
    """A call with its params and its result, as JSON."""

    pk: int
    run_id: int
    tool: str
    version: str
    model_params: Any
    params_text: str
    result_text: str


@dataclass(frozen=True)
class RunValues:
    """The values that a run has seen, loaded on the first search.

    Attributes:
        edited: the values that a person has just changed; they are treated as typed.
    """

    run: Run
    toolbox: Toolbox
    edited: tuple[str, ...] = ()

    def trace(self, tool: Tool, params: Mapping[str, Any]) -> Provenance:
        """Find the origin of each value in the params of a call."""
        naming = ParamNaming.of(tool)
        offered = list_offered(tool.schema)
        fields = self._get_fields(tool)
        found = mark_fields(trace(self._index, params, offered, naming), fields)
        unseen = find_unseen_names(self._index, params, offered, fields)
        found = replace(found, unseen_names=unseen)
        keys = found.list_own_keys()
        return found.mark_stored(self._load_stored(keys)) if keys else found

    @cached_property
    def _fields(self) -> dict[tuple[str, str], FieldValues]:
        return {}

    def _get_fields(self, tool: Tool) -> FieldValues:
        """Return the result fields of the tool's source, which all tools of the source share."""
        made = FieldValues(self._index.sources, partial(self._read_data, tool))
        return self._fields.setdefault((tool.source, tool.category), made)

    def _read_data(self, tool: Tool, source: SeenText) -> Any:
        """Return the data of a result that comes from the organization's own data or from this
        tool's connected source; None for any other text."""
        read = self.toolbox.get_called_tool(source.tool, source.version)
        is_own = source.origin is SeenIn.OWN
        if read is None or not (is_own or (has_own_fields(read) and is_same_source(read, tool))):
            return None
        result = read_result(source)
        return result.get("data") if result is not None and result["success"] else None

    def find_own_data(self, tool: Tool, params: Mapping[str, Any]) -> OwnData:
        """Find the values from the organization's own data that a call would send outside."""
        recipients = _list_recipients(tool, params)

        @cache
        def has_same_recipients(source: SeenText) -> bool:
            told_by = self.toolbox.get_called_tool(source.tool, source.version)
            return told_by is not None and recipients <= _list_recipients(
                told_by, json.loads(source.request)
            )

        found = find_own_data(self._index, params, has_same_recipients, list_offered(tool.schema))
        if tool.has_side_effects:
            return found  # it needs approval anyway
        return replace(
            found, has_unseen_text=self._has_unseen_text(tool, params, has_same_recipients)
        )

    def _has_unseen_text(
        self,
        tool: Tool,
        params: Mapping[str, Any],
        has_same_recipients: Callable[[SeenText], bool],
    ) -> bool:
        """Return True if the run has read private data and the params have text of unknown origin:
        nobody typed it, and the tool's own schema and the results that may be sent do not contain
        it."""
        known = [
            SeenText(SeenIn.PERSON, json.dumps(tool.schema, ensure_ascii=False), is_json=True),
            SeenText(SeenIn.PERSON, self.run.employee.instructions),
        ]
        private: list[SeenText] = []
        for source in self._index.sources:
            is_known = (
                source.origin is SeenIn.PERSON
                or self._is_public(source)
                or has_same_recipients(source)
            )
            (known if is_known else private).append(source)
        return any(map(has_content, private)) and has_unseen_text(
            params, _find_call_hosts(tool, params), known, private
        )

    def _is_public(self, source: SeenText) -> bool:
        """Return True for a result of one of Gadget's own tools that did not contact a private
        host."""
        tool = self.toolbox.get_called_tool(source.tool, source.version)
        if tool is None or tool.is_from_outside or not tool.open_world:
            return False
        reach = load_network_access(self.run.organization_id)
        hosts = _find_call_hosts(tool, json.loads(source.request))
        return hosts.isdisjoint(reach.private | reach.requested)

    @cached_property
    def _index(self) -> SourceIndex:
        if self.run.pk is None or self.run.origin == Origin.MANUAL:
            return SourceIndex([])  # in a manual call, a person typed every value
        root = _load_first_run(self.run)
        runs = _list_family(root)
        texts, is_partial = _load_call_texts(root.organization_id, runs)
        results = self._read_results(texts)
        is_typed = root.origin != Origin.SCHEDULE or has_typed_task(root)
        task = (
            []
            if is_typed
            else [SeenText(SeenIn.OWN, root.task, title="the schedule", run_id=root.pk)]
        )
        typed = _load_typed(runs, texts, has_typed_task=is_typed)
        if (source := ORIGINS.get(Origin(root.origin))) is not None:
            template, task = _list_origin_texts(root, source.load_texts(root))
            typed = iter([template, *typed])
        people = [SeenText(SeenIn.PERSON, text) for text in (*self.edited, *typed)]
        return SourceIndex([*people, *task, *results], is_partial=is_partial)

    def _read_results(self, calls: Iterable[_CallTexts]) -> Iterator[SeenText]:
        """Yield the results as texts to search; each file is a separate text."""
        read = [call for call in calls if call.tool not in _WITHOUT_OWN_VALUES]
        files = {call.pk: _list_file_texts(call) for call in read if self._reads_files(call)}
        uploaded = self._find_uploaded(
            {path for found in files.values() for path, _ in found if path}
        )
        for call in read:
            source = self._describe_source(call)
            if call.pk not in files:
                yield source
            for path, text in files.get(call.pk, ()):
                is_outside = not path or path in uploaded
                yield replace(
                    source, text=text, origin=SeenIn.OUTSIDE if is_outside else SeenIn.OWN
                )

    def _describe_source(self, call: _CallTexts) -> SeenText:
        tool = self.toolbox.get_called_tool(call.tool, call.version)
        return SeenText(
            SeenIn.OUTSIDE if tool is None or tool.has_outside_results else SeenIn.OWN,
            _read_shown(call),
            is_json=True,
            request=call.params_text,
            is_own_data=tool is not None and not (tool.open_world or tool.is_from_outside),
            tool=call.tool,
            title=str(name_tool(tool, call.tool)),
            call_id=call.pk,
            run_id=call.run_id,
            version=call.version,
        )

    def _find_uploaded(self, paths: Iterable[str]) -> frozenset[str]:
        """Return the paths of files that a person has uploaded or that an employee has filled with
        texts from outside."""
        subjects = {path: _name_subject(path) for path in paths}
        keys = {path: _make_file_key(path) for path in paths}
        uploads = AuditEntry.objects.filter(
            organization_id=self.run.organization_id, action="file_uploaded"
        )
        outside_values = OutsideValue.objects.filter(organization_id=self.run.organization_id)
        known = _load_known(uploads, "subject", subjects.values()) | _load_known(
            outside_values, "key", keys.values()
        )
        return frozenset(
            path for path in subjects if not known.isdisjoint((subjects[path], keys[path]))
        )

    def _reads_files(self, call: _CallTexts) -> bool:
        tool = self.toolbox.get_called_tool(call.tool, call.version)
        return (
            tool is not None
            and tool.returns_outside_text
            and not (tool.is_from_outside or tool.open_world)
        )

    def _load_stored(self, keys: list[str]) -> dict[str, Sighting]:
        stored = OutsideValue.objects.filter(
            organization_id=self.run.organization_id
        ).select_related("call")
        stored = stored.only("key", "param", "title", "call__tool", "call__run_id")
        rows = (row for chunk in _split_rows(keys) for row in stored.filter(key__in=chunk))
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
            for row in rows
        }


def remember_outside_values(call: ToolCall, toolbox: Toolbox) -> None:
    """Record the values from outside that a call has just stored in the organization's own data."""
    tool = toolbox.get_called_tool(call.tool, call.version)
    if not call.provenance or tool is None or tool.is_from_outside or not tool.has_side_effects:
        return
    found = Provenance.from_json(call.provenance).list_outside_keys()
    if found and call.provenance["unsearched"] and call.tool == WRITE_FILE:
        found.append(found[0]._replace(keys=(_make_file_key(call.params["path"]),)))
    values = {
        key: OutsideValue(
            organization_id=call.organization_id,
            key=key,
            param=one.param[:200],
            title=one.title[:200],
            call=call,
        )
        for one in found
        for key in one.keys
    }
    OutsideValue.objects.bulk_create(
        values.values(), batch_size=_ROWS_AT_ONCE, ignore_conflicts=True
    )


def list_edited(before: Any, after: Any) -> tuple[str, ...]:
    """List the values of changed params that the earlier params do not contain, each as a text."""
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


def _list_recipients(tool: Tool, params: Mapping[str, Any]) -> frozenset[str]:
    """List the recipients of a call's params: the hosts that they name and the connected source, or
    the tool itself if there are none."""
    hosts = _find_call_hosts(tool, params)
    if tool.is_from_outside:
        return hosts | {f"source {tool.source}"}
    return hosts or frozenset({f"tool {tool.name}"})


def _find_call_hosts(tool: Tool, params: Mapping[str, Any]) -> frozenset[str]:
    """Find the hosts that a call's params name; empty if the tool cannot read the params."""
    try:
        return find_hosts(tool, dict(params)) or frozenset()
    except ToolError:
        return frozenset()


def _load_first_run(run: Run) -> Run:
    """Return the run with which the task began: this run, or the first run that delegated the
    task."""
    while run.parent_id is not None:
        run = Run.objects.only(
            "organization_id", "parent_id", "origin", "client_request_id", "task"
        ).get(pk=run.parent_id)
    return run


def list_task_runs(run_ids: Iterable[int]) -> dict[int, list[int]]:
    """List the ids of all runs in the same task, for each of these runs; the number of queries does
    not grow with the number of runs."""
    parents: dict[int, int | None] = {}
    level = set(run_ids)
    wanted = sorted(level)
    while level:
        above = dict(Run.objects.filter(pk__in=level).values_list("pk", "parent_id"))
        parents |= above
        level = {pk for pk in above.values() if pk is not None} - parents.keys()
    roots = {pk: _climb(parents, pk) for pk in wanted}
    families = {root: [root] for root in roots.values()}
    root_of = {root: root for root in families}
    level = set(families)
    while level:
        below = Run.objects.filter(parent_id__in=level).order_by("pk")
        level = set()
        for pk, parent_id in below.values_list("pk", "parent_id"):
            root_of[pk] = root_of[parent_id or 0]
            families[root_of[pk]].append(pk)
            level.add(pk)
    return {pk: families[root] for pk, root in roots.items()}


def _climb(parents: Mapping[int, int | None], run_id: int) -> int:
    while (parent_id := parents.get(run_id)) is not None:
        run_id = parent_id
    return run_id


def _list_family(root: Run) -> list[int]:
    """List the ids of this run and of all runs that it delegated, at every level."""
    found, level = [root.pk], [root.pk]
    while level:
        level = list(
            Run.objects.filter(parent_id__in=level).order_by("pk").values_list("pk", flat=True)
        )
        found += level
    return found


def _load_call_texts(organization_id: int, runs: list[int]) -> tuple[list[_CallTexts], bool]:
    """Load these runs' calls that have results, oldest first. Also return True if older calls
    had to be left out."""
    calls = ToolCall.objects.filter(
        organization_id=organization_id, run_id__in=runs, result__isnull=False
    )
    calls = calls.annotate(
        params_text=Cast("params", TextField()), result_text=Cast("result", TextField())
    )
    found: list[_CallTexts] = []
    room = MAX_SEARCHED
    for values in calls.order_by("-pk").values_list(*_CallTexts._fields).iterator(chunk_size=100):
        call = _CallTexts(*values)
        room -= len(call.result_text)
        if room < 0:
            return found[::-1], True
        found.append(call)
    return found[::-1], False


def _load_typed(
    runs: list[int], texts: Iterable[_CallTexts], *, has_typed_task: bool
) -> Iterator[str]:
    """Yield the texts that people typed in these runs: tasks, messages, answers to questions, and
    changed params."""
    messages = Message.objects.filter(run_id__in=runs, author__isnull=False)
    if not has_typed_task:
        messages = messages.exclude(run_id=runs[0], number=1)
    yield from messages.order_by("pk").values_list("text", flat=True)
    for call in texts:
        if call.tool == ASK:
            yield from read_answer(json.loads(call.params_text), json.loads(call.result_text))
        if call.model_params is not None:
            yield from list_edited(call.model_params, json.loads(call.params_text))


def _list_origin_texts(run: Run, texts: tuple[str, str] | None) -> tuple[str, list[SeenText]]:
    """Return the template that a person wrote for the run, and the message from outside that
    started it.

    The message is searched as received and as the employee reads it: shortened, without hidden
    characters.
    """
    read = Message.objects.filter(run_id=run.pk, number=1).values_list("text", flat=True).first()
    outside = SeenText(
        SeenIn.OUTSIDE, read or run.task, title="the message that started the run", run_id=run.pk
    )
    if texts is None:
        return "", [outside]
    template, payload = texts
    return template, [outside, replace(outside, text=payload, is_json=True)]


def find_typed_tasks(runs: Collection[Run]) -> set[int]:
    """Find the ids of the runs whose task a person typed without any part from outside."""
    schedules = {run: _read_schedule_id(run) for run in runs if run.origin == Origin.SCHEDULE}
    made: set[tuple[int, int]] = set()
    if schedules:
        rows = Schedule.objects.filter(pk__in={pk for pk in schedules.values() if pk})
        made = set(rows.exclude(made_in_run="").values_list("organization_id", "pk"))
    return {
        run.pk
        for run in runs
        if run.origin == Origin.TASK
        or (run in schedules and (run.organization_id, schedules[run]) not in made)
    }


def _read_schedule_id(run: Run) -> int:
    """Return the id of the schedule that started the run; 0 if there is none."""
    parts = run.client_request_id.split(":")[1:2]
    return next((int(part) for part in parts if part.isdecimal()), 0)


def has_typed_task(run: Run) -> bool:
    """Return True if a person typed the run's task without any part from outside."""
    return run.pk in find_typed_tasks([run])


def read_answer(params: Any, result: Any) -> Iterator[str]:
    """Yield a person's answer, unless it is one of the answers that the employee itself offered."""
    data = (result or {}).get("data") or {}
    answer, choices = str(data.get("answer", "")), params.get("choices") or []
    if answer and answer not in map(str, choices):
        yield answer


def _read_shown(call: _CallTexts) -> str:
    """Return the part of the stored result that the model has seen, as JSON."""
    return call.result_text.rpartition(METADATA)[0] or call.result_text


def _list_file_texts(call: _CallTexts) -> list[tuple[str, str]]:
    """List the files whose text a result contains, each as path and text in JSON; the path is empty
    if unknown."""
    hits = ((json.loads(call.result_text) or {}).get("data") or {}).get("hits")
    if hits is None:
        return [(json.loads(call.params_text).get("path") or "", _read_shown(call))]
    found: dict[str, list[str]] = {}
    for hit in hits:
        found.setdefault(hit["path"], []).append(hit["text"])
    return [(path, json.dumps([path, *texts], ensure_ascii=False)) for path, texts in found.items()]


def _name_subject(path: str) -> str:
    """Return the subject of a file's audit entries."""
    return f"file:{unicodedata.normalize('NFC', path)}"[:200]


def _make_file_key(path: str) -> str:
    """Return the key of an `OutsideValue` that stands for a whole file."""
    return make_key(f"file:{unicodedata.normalize('NFC', path)}".encode())


def _load_known(rows: QuerySet[Any], column: str, wanted: Iterable[str]) -> set[str]:
    """Return the wanted values that occur in the column."""
    chosen = (rows.filter(**{f"{column}__in": chunk}) for chunk in _split_rows(sorted(wanted)))
    return {value for each in chosen for value in each.values_list(column, flat=True)}


def _split_rows(values: list[str]) -> Iterator[list[str]]:
    """Split the values into lists that are short enough for one statement."""
    return (values[start : start + _ROWS_AT_ONCE] for start in range(0, len(values), _ROWS_AT_ONCE))
