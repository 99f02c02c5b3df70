"""The playback of a run, as a page for members and as one self-contained HTML file."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from django.contrib.staticfiles import finders
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.loader import get_template
from django.utils.safestring import SafeString

from agents.accounts.models import Membership
from agents.employees.toolboxes import load_toolbox
from agents.platform.row_ids import get_row
from agents.runs.models import Event, Run
from agents.runs.redaction import EventRedaction
from agents.web.jinja_environment import JINJA
from agents.web.panel.timeline import build_timeline
from agents.web.playback.entries import build_entries, find_title
from agents.web.views.pages import as_download, member_view, render_page
from tools.caches import Cache

FIRST_EVENTS = 4_000
LAST_EVENTS = 1_000
"""The numbers of events that the playback of a long run shows from its beginning and from its
end."""
STYLES = ("css/tokens.css", "css/playback.css")
SCRIPT = "js/playback/playback.js"
POLICY = "default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'"
"""The content security policy of the exported file: only its own script and styles are allowed."""
_FILES: Cache[str, str] = Cache(len((*STYLES, SCRIPT)))
"""The texts of the exported file's styles and script, by file name."""


@member_view("GET")
def playback_page(request: HttpRequest, member: Membership, run_id: int) -> HttpResponseBase:
    """Show the whole run as it happened."""
    run = _load_run(member, run_id)
    events = _load_events(run)
    context = {
        "run": run,
        "entries": build_entries(events),
        "timeline": build_timeline(events),
        "place": "runs",
    }
    return render_page(request, member, "playback/page.html", context)


@member_view("GET")
def export_playback(request: HttpRequest, member: Membership, run_id: int) -> HttpResponseBase:
    """Download the playback as one HTML file; `?redact=values` and `?redact=texts` leave out parts
    of it."""
    run = _load_run(member, run_id)
    chosen = request.GET.getlist("redact")
    find_tool = load_toolbox(member.organization_id).get_tool
    redaction = EventRedaction(
        values="values" in chosen, texts="texts" in chosen, find_tool=find_tool
    )
    style, script = "".join(map(_read_static, STYLES)), _read_static(SCRIPT)
    events = _load_events(run)
    context = {
        "run": run,
        "entries": build_entries(events, redaction),
        "style": SafeString(style),
        "script": SafeString(script),
        "policy": SafeString(POLICY.format(style=_hash(style), script=_hash(script))),
        "redaction": redaction,
        "title": redaction.redact_text(find_title(events) or str(run)),
        "task": redaction.redact_text(run.task),
    }
    response = HttpResponse(get_template("playback/export.html", using=JINJA).render(context))
    return as_download(response, f"run-{run.pk}-replay.html")


def _load_events(run: Run) -> list[Event]:
    """Load the events of the playback: all of them or, for a long run, only the first and the last
    events."""
    is_shown = Q(seq__lte=FIRST_EVENTS) | Q(seq__gte=run.next_event_seq - LAST_EVENTS)
    return list(run.events.filter(is_shown).order_by("seq"))


def _load_run(member: Membership, run_id: int) -> Run:
    rows = Run.objects.filter(organization_id=member.organization_id).select_related("employee")
    return get_row(rows, run_id, "run")


def _read_static(name: str) -> str:
    """Read a static file from its source, once.

    Raises:
        FileNotFoundError: the installation lacks the file.
    """
    path = finders.find(name)
    if path is None:
        raise FileNotFoundError(name)
    return _FILES.get_or_load(name, lambda: Path(path).read_text(encoding="utf-8"))


def _hash(text: str) -> str:
    """Return the hash that a content security policy compares."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
