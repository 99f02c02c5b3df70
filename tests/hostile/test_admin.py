"""The admin's lists show hostile text as text: nothing runs, and hidden characters are shown as
tokens, except in inputs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import Model
from django.utils import timezone
from django.utils.html import escape

from agents.accounts.models import Credential, Membership, Organization
from agents.admin.template_filters import reveal_hidden
from agents.approval_rules.models import ApprovalRule, ApproverGroup, Deputy
from agents.employees.models import ToolRule
from agents.runs.models import Pass
from tests.admin.rows import address
from tests.hostile import HOSTILE, squeezed
from tests.hostile.pages import Reading, Shape, strange, untold
from tests.hostile.world import HostileWorld, make_hostile_world
from tools.connections.models import AllowedHost, Source

pytestmark = [pytest.mark.django_db, pytest.mark.once]

SECONDS = 15
BREAKS = {"<br >"}
MAX_PAGES = 60
PARTS = 3
LONGEST = {
    "AllowedHost": 250,
    "AccessAttempt": 250,
    "AccessFailureLog": 250,
    "AccessLog": 250,
    "ApiToken": 80,
    "Approval": 200,
    "ApprovalRule": 80,
    "ApproverGroup": 60,
    "AuditEntry": 200,
    "Credential": 80,
    "Deputy": 150,
    "Draft": 200,
    "Employee": 120,
    "Event": 200,
    "ListEntry": 100,
    "Membership": 150,
    "Message": 200,
    "ModelProvider": 80,
    "Organization": 120,
    "Pass": 200,
    "Record": 200,
    "RecordList": 100,
    "Run": 200,
    "Source": 200,
    "ToolCall": 200,
    "ToolRule": 120,
    "User": 150,
}
"""By model, the length to which the strings are cut in its list."""


def prepared(*, is_hostile: bool) -> HostileWorld:
    """Create the world with a superuser and rows of every other model, with all strings in the
    columns of their lists."""
    made = make_hostile_world(is_hostile=is_hostile)
    world, texts, names, ends = (
        made.world,
        made.words.of(200),
        made.words.of(120),
        made.words.of(250),
    )
    root = world.users["root"] = User.objects.create_superuser("root")
    about = ContentType.objects.get_for_model(Organization)
    runs = zip(made.runs, texts, strict=True)
    Pass.objects.bulk_create(
        Pass(run=run, number=1, response={"text": text}, text=text, messages_upto=1)
        for run, text in runs
    )
    what = {
        "user": root,
        "content_type": about,
        "object_id": str(world.acme.pk),
        "action_flag": CHANGE,
    }
    LogEntry.objects.bulk_create(
        LogEntry(**what, object_repr=text, change_message=text) for text in texts
    )
    Organization.objects.filter(pk=world.acme.pk).update(name=texts[-1][:120])
    ToolRule.objects.bulk_create(
        ToolRule(organization=world.acme, tool=name, stopped_by=name) for name in names
    )
    services = made.words.of(80)
    Credential.objects.bulk_create(
        Credential(organization=world.acme, service=service, fields="{}", changed_by=service)
        for service in services
    )
    AllowedHost.objects.bulk_create(
        AllowedHost(organization=world.acme, host=text) for text in ends
    )
    Source.objects.bulk_create(
        Source(
            organization=world.acme,
            kind="openapi",
            name=f"s{number}",
            problem=text,
            checked_at=timezone.now(),
        )
        for number, text in enumerate(texts)
    )
    make_rules(made)
    make_attempts(ends)
    return made


def make_attempts(texts: list[str]) -> None:
    """Create rows for successful and failed logins."""
    for model in (AccessAttempt, AccessLog, AccessFailureLog):
        more = (
            {"failures_since_start": 1, "get_data": "x", "post_data": "x"}
            if model is AccessAttempt
            else {}
        )
        model.objects.bulk_create(
            model(
                username=text,
                user_agent=text,
                path_info=text,
                http_accept=text,
                ip_address="::1",
                **more,
            )
            for text in texts
        )


def make_rules(made: HostileWorld) -> None:
    """Create approval rules, groups and deputies."""
    acme, ends_at = made.world.acme, timezone.now() + timedelta(days=1)
    ApprovalRule.objects.bulk_create(
        ApprovalRule(organization=acme, name=text, tool=text, category=text)
        for text in made.words.of(80)
    )
    ApproverGroup.objects.bulk_create(
        ApproverGroup(organization=acme, name=text) for text in made.words.of(60)
    )
    members = list(Membership.objects.filter(user__in=made.users).order_by("pk"))
    pairs = zip(members, [*members[1:], members[0]], strict=True)
    Deputy.objects.bulk_create(
        Deputy(member=one, deputy=other, ends_at=ends_at) for one, other in pairs
    )


def found_organizations(made: HostileWorld) -> None:
    """Create one organization per name. They are in the filters of every list, which makes each
    page expensive."""
    names = enumerate(made.words.of(120))
    Organization.objects.bulk_create(
        Organization(name=name, slug=f"o{number}") for number, name in names
    )


def read(
    made: HostileWorld, models: list[type[Model]], most: int = 0
) -> Iterator[tuple[str, Reading]]:
    """Read every page of the models' lists, or at most this many of each."""
    client = made.world.client("root")

    def page(where: str) -> tuple[Any, Reading]:
        response = client.get(where, follow=True)
        assert response.status_code == 200, (where, response.status_code)
        return response, Reading(response.content.decode())

    # Open one form first, because Unfold's first form changes the labels of all others.
    client.get(address(made.world.acme, "change"))
    yield "index", page("/admin/")[1]
    for model in models:
        for number in range(1, (most or MAX_PAGES) + 1):
            response, reading = page(f"{address(model, 'list')}?p={number}")
            yield f"{model.__name__} list", reading
            if len(response.context["cl"].result_list) < response.context["cl"].list_per_page:
                break


def world_for(models: list[type[Model]], *, is_hostile: bool) -> HostileWorld:
    made = prepared(is_hostile=is_hostile)
    if models == [Organization]:
        found_organizations(made)
    return made


@pytest.mark.parametrize("part", range(PARTS + 1))
def test_every_list_of_the_admin_escapes_hostile_text_and_shows_all_of_it(part: int) -> None:
    others = [model for model in admin.site._registry if model is not Organization]
    models: list[type[Model]] = others[part::PARTS] if part < PARTS else [Organization]
    known: dict[str, set[Shape]] = {}
    usual: set[str] = set()
    with transaction.atomic():
        for kind, reading in read(world_for(models, is_hostile=False), models, most=2):
            known.setdefault(kind, set()).update(reading.shapes)
            usual |= set(reading.faults)
        transaction.set_rollback(True)
    found: dict[str, set[str]] = {}
    told: dict[str, str] = {}
    for kind, reading in read(world_for(models, is_hostile=True), models):
        wrong = {*strange(reading, known[kind]), *reading.faults} - usual - BREAKS
        found.setdefault(kind, set()).update(list(wrong)[:3])
        told[kind] = told.get(kind, "") + reading.text
    assert {kind: wrong for kind, wrong in found.items() if wrong} == {}
    for model in models:
        assert model.__name__ in LONGEST, (
            f"fill the list of {model.__name__} with all strings, and say it there"
        )
        assert untold(told[f"{model.__name__} list"], LONGEST[model.__name__]) == [], model


def test_hidden_characters_are_shown_everywhere_except_in_form_values() -> None:
    html = (
        '<a title="1\u202e" x-on:click="a => b">2\u202e</a><option value="3\u202e">4\u202e</option>'
        '<input value="5\u202e" placeholder=\'6\u202e\'><textarea rows="2">7\u202e title="8\u202e"</textarea>'
        "<script>9\u202e</script>"
    )
    shown = reveal_hidden(html)
    for number in (1, 2, 4, 6):
        assert f"{number}⟦U+202E⟧" in shown
    for number in (3, 5, 7, 8, 9):
        assert f"{number}\u202e" in shown
    assert shown.replace("⟦U+202E⟧", "\u202e") == html


def test_every_hostile_string_is_on_the_page_and_is_rendered_quickly() -> None:
    began = time.process_time()
    for text in HOSTILE:
        reading = Reading(
            reveal_hidden(
                f'<p title="{escape(text)}">{escape(text)}</p><input value="{escape(text)}">'
            )
        )
        assert reading.text == squeezed(text, one_line=False, counts_marks=False)
        assert reading.shapes == {("p", frozenset({"title"})), ("input", frozenset({"value"}))}
        assert not [fault for fault in reading.faults if "U+000" not in fault]
    assert time.process_time() - began < SECONDS
