"""The look of the pages: light, dark, or the system's. The browser remembers the choice in a
cookie."""

from __future__ import annotations

from django.http import HttpRequest

THEMES = (("light", "Light"), ("dark", "Dark"), ("", "System"))
THEME_COOKIE = "gadget_theme"


def read_theme(request: HttpRequest) -> str:
    """Return `light` or `dark` if the reader has chosen it; empty for the system's choice."""
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return theme if theme in dict(THEMES) else ""
