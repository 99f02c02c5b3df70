"""The search across everything, as a page and as the list in the command palette."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.text import capfirst

from agents.accounts.models import Membership, Role
from agents.web.frame.finding import MAX_QUERY_LENGTH, Hit, find_everything
from agents.web.views.pages import member_view, render_page

WORDS = {
    "AllowedHost": "hosts addresses web network",
    "ApiToken": "REST keys access",
    "ApprovalRule": "rules two people groups",
    "ApproverGroup": "groups of people",
    "Credential": "secrets keys passwords",
    "Membership": "members roles people",
    "ModelProvider": "provider, models, keys",
    "Organization": "settings, budgets, two-person rule, break-glass",
    "Source": "connections, APIs, MCP servers",
    "ToolRule": "rules, levels and limits of tools",
}
"""Other words for the pages of the admin, by the name of their model."""


@member_view("GET")
def search_page(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the hits for `?q=`; with `?palette=1`, return only the options for the command
    palette."""
    query = request.GET.get("q", "").replace("\0", "").strip()[:MAX_QUERY_LENGTH]
    found = find_everything(member, query, _list_settings(request, member))
    context = {"groups": found, "in_palette": bool(request.GET.get("palette")), "query": query}
    if not context["in_palette"]:
        return render_page(request, member, "search/page.html", context)
    response: HttpResponse = render(request, "search/results.html", context)
    response["Cache-Control"] = "no-store"
    return response


def _list_settings(request: HttpRequest, member: Membership) -> list[Hit]:
    """List the pages of the admin that the member may open, each with other search terms for it."""
    if not (member.may(Role.ADMIN) and request.user.is_staff):
        return []
    models = [
        each
        for app in admin.site.get_app_list(request)
        for each in app["models"]
        if each["admin_url"]
    ]
    return [
        Hit(
            capfirst(str(each["name"])),
            "settings",
            each["admin_url"],
            WORDS.get(each["object_name"], ""),
        )
        for each in models
    ]
