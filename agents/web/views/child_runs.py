"""The fragment that shows a delegated run in the panel of its parent run."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase

from agents.accounts.models import Membership
from agents.platform.refusals import NotFound
from agents.runs.models import Run
from agents.web.panel.child_runs import load_child_run
from agents.web.views.pages import member_view, render_page


@member_view("GET")
def child_run_fragment(request: HttpRequest, member: Membership, run_id: int) -> HttpResponseBase:
    """Render the delegated run's current state, without a page around it."""
    run = Run.objects.filter(organization_id=member.organization_id, pk=run_id).first()
    child = load_child_run(run) if run is not None else None
    if child is None:
        raise NotFound(f"There is no delegated run {run_id}.")
    return render_page(request, member, "panel/child.html", {"child": child})
