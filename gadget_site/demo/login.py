"""One-click login as one of the demo's people, while DEBUG is on and the demo's accounts exist.

Only browsers on this machine get the buttons, and only while no other machine can reach Gadget,
because a button does not ask for a password.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import CharField, F, Value
from django.db.models.functions import Concat
from django.http import Http404, HttpRequest, HttpResponseBase

from agents.web.local_requests import is_from_this_machine
from agents.web.views.account import LoginForm, LoginPage
from gadget_site.demo.names import EMAIL_DOMAIN, ORGANIZATIONS, PASSWORD

PEOPLE = {
    "approver": "Starts tasks and approves changes",
    "operator": "Starts tasks",
    "viewer": "Can only view",
    "admin": "Approves changes and manages users",
    "outsider": "Belongs to another organization",
}


@dataclass(frozen=True)
class DemoPerson:
    """A demo person with a button on the login page."""

    username: str
    description: str


def offer_demo_people(request: HttpRequest) -> dict[str, Callable[[], list[DemoPerson]]]:
    """Provide `demo_people()` to templates, as a Django context processor."""
    return {"demo_people": lambda: list_demo_people(request)}


def list_demo_people(request: HttpRequest) -> list[DemoPerson]:
    """Return the people whose accounts the demo created; none while DEBUG is off, and none for
    other machines."""
    if not settings.DEBUG or not is_from_this_machine(request):
        return []
    own_email = Concat(F("username"), Value(f"@{EMAIL_DOMAIN}"), output_field=CharField())
    accounts = User.objects.filter(
        username__in=PEOPLE,
        is_active=True,
        email=own_email,
        memberships__organization__slug__in=ORGANIZATIONS,
    )
    names = set(accounts.values_list("username", flat=True))
    return [DemoPerson(name, description) for name, description in PEOPLE.items() if name in names]


class DemoLoginForm(LoginForm):
    """The login form with an error message of its own: a button's password is wrong only if
    somebody changed it."""

    error_messages = LoginForm.error_messages | {
        "invalid_login": "The password of this demo account was changed. Log in with the new one."
    }


class DemoLogin(LoginPage):
    """Log in as the person whose button was pressed, with the demo's password; otherwise, work like
    the login page."""

    http_method_names = ["post", "options"]
    form_class = DemoLoginForm

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Return 404 if this request may not use any of the buttons."""
        if not list_demo_people(request):
            raise Http404("There is no demo.")
        return super().dispatch(request, *args, **kwargs)

    def get_form_kwargs(self) -> dict[str, Any]:
        name = self.request.POST.get("username", "")
        if all(person.username != name for person in list_demo_people(self.request)):
            raise Http404("The demo has no such person.")
        return {**super().get_form_kwargs(), "data": {"username": name, "password": PASSWORD}}
