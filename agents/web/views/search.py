"""The search for everything, as a page and as the list of the palette."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from agents.accounts.models import Membership
from agents.web.frame.finding import MAX_QUERY_LENGTH, find_everything
from agents.web.views.pages import member_view, render_page


@member_view("GET")
def search_page(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show what matches `?q=`; with `?palette=1`, only the list, as the options of the palette."""
    query = request.GET.get("q", "").replace("\0", "").strip()[:MAX_QUERY_LENGTH]
    context = {"groups": find_everything(member, query), "in_palette": bool(request.GET.get("palette")), "query": query}
    if not context["in_palette"]:
        return render_page(request, member, "search/page.html", context)
    response: HttpResponse = render(request, "search/results.html", context)
    response["Cache-Control"] = "no-store"
    return response
