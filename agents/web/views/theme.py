"""Choose the look of the pages."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect

from agents.accounts.models import Membership
from agents.web.frame.theme import THEME_COOKIE, THEMES
from agents.web.views.pages import find_previous_page, member_view

MAX_AGE_S = 400 * 24 * 3600
"""The longest time for which browsers keep a cookie."""


@member_view("POST", page="home")
def choose_theme(request: HttpRequest, _member: Membership) -> HttpResponseBase:
    """Remember the chosen look in a cookie and redirect back; scripts do the same without a
    request."""
    theme = request.POST.get("theme", "")
    response = redirect(find_previous_page(request))
    if theme in dict(THEMES) and theme:
        secure = settings.SESSION_COOKIE_SECURE
        response.set_cookie(THEME_COOKIE, theme, max_age=MAX_AGE_S, samesite="Lax", secure=secure)
    else:
        response.delete_cookie(THEME_COOKIE, samesite="Lax")
    return response
