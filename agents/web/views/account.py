"""Log in, log out, and choose the organization to work in."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import logout
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from agents.accounts.membership import switch_organization
from agents.accounts.models import Membership
from agents.platform.refusals import NotFound
from agents.platform.row_ids import parse_row_id
from agents.web.frame.unsent_texts import FIELD, parse_unsent
from agents.web.views.pages import member_view


class LoginForm(AuthenticationForm):
    """The login form, with its own message for a failed login."""

    error_messages = {
        **AuthenticationForm.error_messages,
        "invalid_login": "The username or password is wrong. Both are case-sensitive.",
    }


class LoginPage(LoginView):
    """The login page; it redirects people who are already logged in to the start page."""

    form_class = LoginForm
    template_name = "login/login.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Keep the texts of the form sent before the login, even after a wrong password."""
        unsent = parse_unsent(self.request.POST.get(FIELD))
        return super().get_context_data(**kwargs) | {"unsent": unsent.to_json() if unsent else ""}

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Pass the texts of the form sent before the login to the next page, once the person is
        logged in, in this tab or another."""
        response = super().dispatch(request, *args, **kwargs)
        unsent = parse_unsent(request.POST.get(FIELD))
        if unsent and request.user.is_authenticated:
            request.session[FIELD] = unsent.to_json()
        return response


@require_http_methods(["GET", "HEAD", "POST"])
def log_out(request: HttpRequest) -> HttpResponseBase:
    """Log out on POST; GET only redirects to the start page."""
    if request.method != "POST":
        return redirect("home")
    logout(request)
    return redirect("login")


@member_view("POST", page="home")
def choose_organization(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Switch to another of the member's organizations and redirect to its start page."""
    try:
        organization_id = parse_row_id(request.POST.get("organization", ""))
    except ValueError as error:
        raise NotFound("There is no such organization.") from error
    if switch_organization(member.user, request.session, organization_id) is None:
        raise NotFound("There is no such organization.")
    return redirect("home")
