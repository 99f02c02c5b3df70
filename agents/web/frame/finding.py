"""The search across everything: pages, settings, actions, tools, employees, cards, runs and
records, a few of each.

A tool with exactly the searched name comes first among the tools. Employees, runs and records come
from the member's organization. The text of runs and the names of records have no index for parts of
words, so only the newest rows are scanned. A record's exact name is found among all records,
regardless of case. The cost does not grow with the number of rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlencode

from django.db.models import Model, Q, QuerySet
from django.urls import reverse
from django.utils.text import Truncator

from agents.accounts.models import Membership
from agents.approvals.warnings.card_marks import load_marks
from agents.approvals.warnings.marks import end_with_marks
from agents.employees.models import Employee
from agents.employees.toolboxes import load_toolbox
from agents.gateway.tickets import PREFIX
from agents.platform.row_ids import parse_row_id_or_none
from agents.runs.models import Approval, Run, ToolCall
from agents.web.frame.actions import list_actions
from agents.web.frame.places import list_places
from tools.contract import Tool
from tools.contract.look_alikes import compute_look
from tools.contract.outside_text import OutsideText
from tools.registries.records import RECORD_STORE

Row = TypeVar("Row", bound=Model)

MAX_HITS = 5
NUMBER = re.compile(r"(?:(?:card|run|approval)\s*)?#?\s*([0-9]+)", re.IGNORECASE)
TICKET = re.compile(rf"(?:ticket\s*)?{PREFIX}([0-9]+)", re.IGNORECASE)
MAX_QUERY_LENGTH = 200
MIN_TEXT_LENGTH = 2
"""The length below which a text finds only pages, settings and actions, because nearly every name
contains any single letter."""
MAX_SCANNED_RUNS = 1_000
MAX_SCANNED_RECORDS = 5_000
MAX_SENTENCE = 120
"""The maximum number of characters shown of a card's sentence."""


@dataclass(frozen=True)
class Hit:
    """A search result.

    Attributes:
        fields: the fields to send to the address to perform the action; None for a link.
    """

    name: str
    icon: str
    address: str
    note: str = ""
    fields: tuple[tuple[str, str], ...] | None = None

    @property
    def query(self) -> str:
        """The fields as a query string."""
        return urlencode(self.fields or ())


@dataclass(frozen=True)
class HitGroup:
    """The hits of one kind."""

    label: str
    hits: list[Hit]


def find_everything(member: Membership, query: str, settings: Iterable[Hit] = ()) -> list[HitGroup]:
    """Find everything that matches all words of the query, grouped by kind; an empty query finds
    all pages, actions and settings.

    Args:
        settings: the pages of the admin that the member may open; their notes are searched, too.
    """
    words = query.lower().split()
    actions = [
        Hit(each.name, each.icon, each.address, fields=each.fields)
        for each in list_actions(member)
        if _has(words, each.name, each.words)
    ]
    places = [
        Hit(each.label, each.icon, each.address)
        for each in list_places(member)
        if _has(words, each.label, each.page, each.words)
    ]
    groups = [
        HitGroup("Actions", _put_first(actions, words)),
        HitGroup("Pages", _put_first(places, words)),
        HitGroup(
            "Settings",
            _put_first([hit for hit in settings if _has(words, hit.name, hit.note)], words),
        ),
    ]
    if not words:
        groups[:2] = [groups[1], groups[0]]
    elif len(query.strip()) >= MIN_TEXT_LENGTH or query.strip().isdigit():
        number = _parse_number(query)
        tools = [] if number is not None else _find_tools(member.organization_id, words)
        is_exact = bool(tools) and tools[0].note.casefold() == query.strip().casefold()
        groups = [
            *([HitGroup("Tools", tools)] if is_exact else []),
            HitGroup("Cards", _find_cards(member.organization_id, number)),
            *groups,
            *([] if is_exact else [HitGroup("Tools", tools)]),
            HitGroup("Employees", _find_employees(member.organization_id, words)),
            HitGroup("Runs", _find_runs(member.organization_id, words, _find_exact(query))),
            HitGroup("Records", _find_records(member.organization_id, words, query)),
        ]
    return [group for group in groups if group.hits]


def _parse_number(query: str) -> int | None:
    """Read the number of a card or run, from a query such as `17`, `#17` or `card 17`; None for any
    other query."""
    found = NUMBER.fullmatch(query.strip())
    return parse_row_id_or_none(found[1]) if found else None


def _find_exact(query: str) -> Q | None:
    """Return the condition for the run with the number in the query, or for the run of the ticket
    `t-17`; None for any other query."""
    number, ticket = _parse_number(query), TICKET.fullmatch(query.strip())
    if ticket is not None:
        call_id = parse_row_id_or_none(ticket[1])
        return (
            None
            if call_id is None
            else Q(pk__in=ToolCall.objects.filter(pk=call_id).values("run_id"))
        )
    return None if number is None else Q(pk=number)


def _has(words: Iterable[str], *texts: str) -> bool:
    """Return True if the texts contain all words."""
    text = " ".join(texts).lower()
    return all(word in text for word in words)


def put_exact_first(tools: Iterable[Tool], query: str) -> list[Tool]:
    """Put the tool whose name or title is exactly the query before the others."""
    wanted = query.strip().casefold()
    return sorted(
        tools, key=lambda tool: wanted not in (tool.name.casefold(), tool.title.casefold())
    )


def _find_tools(organization_id: int, words: list[str]) -> list[Hit]:
    """Find tools by name and title: first the tool with this exact name or title, then tools whose
    name starts with the first word."""
    toolbox = load_toolbox(organization_id)
    found = [tool for tool in toolbox.tools() if _has(words, tool.name, tool.title)]
    found.sort(key=lambda tool: (not tool.name.lower().startswith(words[0]), tool.name))
    shown = put_exact_first(found, " ".join(words))[:MAX_HITS]
    named = [(tool.title, toolbox.get_unique_name(tool)) for tool in shown]
    return [Hit(title, "wrench", reverse("tool", args=(name,)), name) for title, name in named]


def _find_cards(organization_id: int, number: int | None) -> list[Hit]:
    """Find the card with this number."""
    if number is None:
        return []
    rows = Approval.objects.filter(organization_id=organization_id, pk=number)
    cards = list(rows.select_related("tool_call", "run__organization"))
    marks = load_marks(cards)
    return [
        Hit(
            Truncator(row.sentence.replace("*", "")).chars(MAX_SENTENCE),
            "inbox",
            reverse("approval", args=(row.pk,)),
            f"Card {row.pk} · {row.get_status_display().lower()}"
            f"{end_with_marks(marks.get(row.pk, ()))}",
        )
        for row in cards
    ]


def _put_first(hits: list[Hit], words: list[str]) -> list[Hit]:
    """Sort the hits whose names start with the first word before those that contain it, and keep
    the first 5; if there are no words, keep all hits."""
    if not words:
        return hits
    ranked = sorted(hits, key=lambda hit: _rank(hit.name.lower(), words[0]))
    return ranked[:MAX_HITS]


def _rank(name: str, word: str) -> int:
    return 0 if name.startswith(word) else 1 if word in name else 2


def _find_employees(organization_id: int, words: list[str]) -> list[Hit]:
    rows = Employee.objects.filter(_contains("name", words), organization_id=organization_id)
    found = rows.order_by("name").values_list("pk", "name", "job_title")[:MAX_HITS]
    return [Hit(name, "bot", reverse("employee", args=(pk,)), title) for pk, name, title in found]


def _find_runs(organization_id: int, words: list[str], exact: Q | None) -> list[Hit]:
    """Find runs by title or task, the newest first. The run that `exact` selects comes before all
    others."""
    rows = Run.objects.filter(organization_id=organization_id).order_by("-pk")
    newest = _limit(rows, MAX_SCANNED_RUNS)
    texts = Q(*(Q(title__icontains=word) | Q(task__icontains=word) for word in words))
    columns = ("pk", "title", "employee__name")
    found = list(newest.filter(texts).values_list(*columns)[:MAX_HITS])
    if exact is not None:
        first = list(rows.filter(exact).values_list(*columns))
        found = [*first, *(row for row in found if row not in first)][:MAX_HITS]
    return [
        Hit(OutsideText(title), "list-checks", reverse("run", args=(pk,)), f"Run {pk} · {name}")
        for pk, title, name in found
    ]


def _find_records(organization_id: int, words: list[str], query: str) -> list[Hit]:
    """Find records by name: first records with exactly this name, then the last changed records
    whose names contain all words."""
    rows = RECORD_STORE.get().get_records(organization_id).order_by("-updated_at", "-pk")
    columns = ("pk", "name", "category")
    exact = list(rows.filter(look=compute_look(query)).values_list(*columns)[:MAX_HITS])
    scanned = (
        _limit(rows, MAX_SCANNED_RECORDS)
        .filter(_contains("name", words))
        .values_list(*columns)[:MAX_HITS]
    )
    found = [*exact, *(row for row in scanned if row not in exact)][:MAX_HITS]
    return [
        Hit(OutsideText(name), "database", reverse("record", args=(pk,)), category)
        for pk, name, category in found
    ]


def _contains(field: str, words: Iterable[str]) -> Q:
    return Q(*((f"{field}__icontains", word) for word in words))


def _limit(rows: QuerySet[Row], count: int) -> QuerySet[Row]:
    """Return the first `count` of these rows, in the same order, as a query that accepts more
    conditions."""
    model = rows.model
    return model._default_manager.filter(pk__in=rows.values("pk")[:count]).order_by(
        *rows.query.order_by
    )
