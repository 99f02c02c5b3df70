"""The own password: the old one and twice a new one. This session goes on, all others of the account end."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_post_parameters

from agents import members
from agents.models import Membership

from .pages import framed, page

FIELDS = ("old_password", "new_password1", "new_password2")


@sensitive_post_parameters(*FIELDS)
@page("GET", "POST")
def own_password(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """GET shows the form; POST sets the password, or says what is wrong with it."""
    form = PasswordChangeForm(member.user, request.POST if request.method == "POST" else None)
    if form.is_valid():
        with transaction.atomic():
            form.save()
            members.record_own_password(member)
        update_session_auth_hash(request, member.user)
        messages.success(request, "Your password is changed. Wherever else you were logged in, you are logged out.")
        return redirect("home")
    answer = framed(request, member, "users/own_password.html", {"form": form, "place": ""})
    answer.status_code = 422 if form.is_bound else 200
    return answer
