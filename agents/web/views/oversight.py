"""The oversight page, for admins only: how people decide cards, as figures, a chart and CSV
files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone

from agents.accounts.models import Membership, Role
from agents.insight.oversight import (
    DEFAULT_PERIOD,
    PERIODS,
    PersonDecisions,
    load_oversight,
    load_person_figures,
    load_tool_corrections,
)
from agents.platform.refusals import Forbidden, Invalid
from agents.web.charts.bar_charts import build_decisions_chart
from agents.web.charts.employee_figures import sort_by_title
from agents.web.views.pages import as_download, member_view, render_page
from tools.contract.spreadsheets import BYTE_ORDER_MARK, guard_cell

PERSON_COLUMNS = (
    *("person", "cards", "decisions", "decisions_in_bulk", "median_ms"),
    *("approved_under_2_s", "approved", "edited", "denied"),
)
TOOL_COLUMNS = ("tool", "calls", "approved", "edited", "denied", "calls_denied_or_edited")


@member_view("GET")
def oversight_page(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the figures of the period chosen by `?days=`."""
    organization, days = _require_admin(member).organization, _read_period(request)
    found = load_oversight(organization.pk, days)
    context = {
        "people": found.people,
        "hasty": [person for person in found.people if person.is_hasty],
        "tools": sort_by_title(organization.pk, found.tools),
        "chart": build_decisions_chart(found.days, days),
        "days": days,
        "periods": PERIODS,
    }
    return render_page(request, member, "oversight/page.html", context)


@member_view("GET")
def export(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Download the figures of people or tools as a CSV file, chosen by `?table=` and `?days=`."""
    organization, days = _require_admin(member).organization, _read_period(request)
    table = request.GET.get("table", "people")
    if table == "people":
        people = load_person_figures(organization, days)
        text = _format_csv(
            PERSON_COLUMNS, ([person.name, *_list_numbers(person.decided)] for person in people)
        )
    elif table == "tools":
        text = _format_csv(TOOL_COLUMNS, load_tool_corrections(organization.pk, days))
    else:
        raise Invalid("table", f"{table[:40]!r} is not a table. Choose one of: people, tools.")
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    name = f"oversight-{table}-{organization.slug}-{timezone.now():%Y-%m-%d}-{days}-days.csv"
    return as_download(response, name)


def _require_admin(member: Membership) -> Membership:
    if not member.may(Role.ADMIN):
        raise Forbidden("Only admins can see how people decide.")
    return member


def _read_period(request: HttpRequest) -> int:
    days = request.GET.get("days", "")
    return next((period for period in PERIODS if str(period) == days), DEFAULT_PERIOD)


def _list_numbers(decided: PersonDecisions) -> list[int]:
    return [
        *(decided.cards, decided.decisions, decided.in_bulk, decided.median_ms),
        *(decided.quick, decided.approved, decided.edited, decided.denied),
    ]


def _format_csv(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Format a table as CSV: quote every cell, and keep spreadsheets from reading any cell as a
    formula."""
    text = io.StringIO()
    lines = csv.writer(text, quoting=csv.QUOTE_ALL)
    lines.writerow(columns)
    lines.writerows([guard_cell(str(value)) for value in row] for row in rows)
    return BYTE_ORDER_MARK + text.getvalue()
