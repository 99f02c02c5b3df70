"""Middleware for logins: remember the browser after a login, and respond to logins that are refused
or must wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from agents.accounts.logins.hashing import RETRY_AFTER_S, TooBusy
from agents.accounts.logins.known_browsers import remember
from agents.accounts.logins.limits import LoginTries


class LoginMiddleware:
    """Middleware that remembers the browser of a login, and responds with 429 while too many
    passwords wait to be hashed."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self._get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self._is_async:
            return self._respond_async(request)
        return _remember_browser(request, self._get_response(request))

    async def _respond_async(self, request: HttpRequest) -> HttpResponseBase:
        return _remember_browser(request, await self._get_response(request))

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the 429 page if too many passwords wait to be hashed; None for any other
        exception. Uncount the try, because its password was never checked."""
        if not isinstance(exception, TooBusy):
            return None
        if tries := getattr(request, "login_tries", None):
            tries.uncount()
        return _render_refusal(request, "login/busy.html", RETRY_AFTER_S)


def render_locked_page(
    request: HttpRequest, _response: HttpResponseBase, _credentials: dict[str, Any] | None
) -> HttpResponse:
    """Render the response to a refused login, for django-axes."""
    return render_too_many_tries(request, cast("Any", request).login_tries)


def render_too_many_tries(request: HttpRequest, tries: LoginTries) -> HttpResponse:
    """Render the page that says when the next try is allowed, after too many wrong passwords."""
    return _render_refusal(request, "login/locked.html", tries.get_wait_s())


def _render_refusal(request: HttpRequest, template: str, wait_s: int) -> HttpResponse:
    response = render(request, template, {"minutes": -(-wait_s // 60)}, status=429)
    response["Retry-After"] = str(wait_s)
    response["Cache-Control"] = "no-store"
    return response


def _remember_browser(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if username := getattr(request, "remembered_login", ""):
        remember(response, username)
    return response
