"""The page for changing one's own password, which ends all other sessions of the account."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_post_parameters

from agents.accounts import members
from agents.accounts.logins.limits import LoginTries
from agents.accounts.logins.middleware import render_too_many_tries
from agents.accounts.models import Membership
from agents.web.views.pages import member_view, render_page

FIELDS = ("old_password", "new_password1", "new_password2")


class OwnPasswordForm(PasswordChangeForm):
    """The form for a new password, with the words of Gadget's other password forms."""

    error_messages = {
        **PasswordChangeForm.error_messages,
        "password_incorrect": "The current password is wrong.",
        "password_mismatch": "The passwords do not match.",
    }


@sensitive_post_parameters(*FIELDS)
@member_view("GET", "POST")
def change_password(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the form; POST changes the password. A wrong old password counts as a failed login."""
    tries = LoginTries.for_request(request, member.user.get_username())
    if request.method == "POST" and not tries.count():
        return render_too_many_tries(request, tries)
    form = OwnPasswordForm(member.user, request.POST if request.method == "POST" else None)
    if form.is_bound and "old_password" not in form.errors:
        tries.accept()
    if form.is_valid():
        # Hash the password before the transaction: hashing is slow, and other requests wait for the
        # transaction.
        form.save(commit=False)
        with transaction.atomic():
            member.user.save(update_fields=["password"])
            members.record_own_password(member)
        update_session_auth_hash(request, member.user)
        messages.success(request, "Your password was changed. You are logged out everywhere else.")
        return redirect("home")
    page = render_page(request, member, "users/own_password.html", {"form": form, "place": ""})
    page.status_code = 422 if form.is_bound else 200
    return page
