"""Every page refuses people who are logged out, belong to another organization or lack the role;
GET requests change nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Model
from pytest_django import Settings

from agents.accounts.models import AuditEntry, Membership, Role
from agents.approval_rules.models import Deputy
from agents.approvals.models import Claim, SavedView, Snooze
from agents.gateway.keys import issue_key
from agents.gateway.models import AgentKey
from agents.notices.models import Channel, Delivery, FollowedRun, NoticeChoices
from agents.policy.models import PolicyDraft
from agents.runs.models import Approval, ApprovalStatus, Run, RunStatus, WithheldBulk
from agents.standing_grants.models import StandingGrant
from agents.triggers.models import ReceivedMessage, Trigger
from agents.urls import urlpatterns
from agents.webhooks.models import Webhook, WebhookDelivery
from tests.web.addresses import build_address, make_fillers
from tests.world import World, make_world, nobody
from tools.schedules.models import Schedule

pytestmark = [pytest.mark.django_db, pytest.mark.once]  # permissions do not depend on the database

OF_MEMBERS = (
    *(
        "own-password",
        "preferences",
        "deputies",
        "employee",
        "employee-trust",
        "tools",
        "tool",
        "users",
        "stop",
    ),
    "who-may-decide",
    *("notices", "notifications", "agents", "asks", "triggers", "trigger"),
)
OF_ADMINS = (
    *(
        "audit",
        "audit-export",
        "oversight",
        "oversight-export",
        "simulator",
        "policy-draft",
        "webhooks",
        "webhook",
    ),
    "restored-limits",
)
OF_SIMULATOR = ("simulator-save", "shadow-start", "shadow-stop", "policy-draft-delete")
OF_FILES = ("files", "file-download")
OF_SCHEDULES = ("schedule-create", "schedule-pause", "schedule-resume", "schedule-cancel")
OF_RUNS = (
    "call",
    "nested",
    "transcript-markdown",
    "transcript-json",
    "playback",
    "playback-export",
)
OF_RECORDS = (
    "records",
    "record",
    "records-import",
    "records-export",
    "drafts",
    "draft",
    "draft-download",
)
READ = (
    "home",
    "employees",
    "runs",
    "run",
    "approvals",
    "approval",
    "card",
    "nothing",
    *OF_MEMBERS,
    *OF_ADMINS,
    *OF_RECORDS,
    *OF_RUNS,
    *OF_FILES,
    "schedules",
    "grants",
    "search",
)
OF_WEBHOOKS = ("webhook-switch", "webhook-rotate", "webhook-remove", "webhook-repeat")
RULES = (
    "action-level",
    *(
        "invite",
        "revoke-invitation",
        "change-role",
        "remove-member",
        "password-link",
        "audit-verify",
    ),
    *OF_SIMULATOR,
    *OF_WEBHOOKS,
)
OF_NOTICES = (
    *(
        "notice-repeat",
        "notice-choices",
        "channel-add",
        "browser-add",
        "channel-confirm",
        "channel-remove",
        "follow",
    ),
)
OWN_SETTINGS = (
    "agent-key-revoke",
    "snooze",
    "end-snooze",
    "save-view",
    "delete-view",
    "deputy-end",
    *OF_NOTICES,
)
"""Actions on a member's own settings, which every role may take."""
DECISIONS = (
    "approve",
    "deny",
    "dismiss",
    "edit",
    "undo",
    "resolve",
    "take",
    "release",
    "break-glass",
)
UNDO_BULK = ("undo-bulk",)
OF_TRIGGERS = (
    "trigger-create",
    "trigger-send-again",
    "trigger-switch",
    "trigger-renew",
    "trigger-remove",
)
OF_GRANTS = ("grant-new", "grant-revoke")
ACTS = (
    "switch-organization",
    "theme",
    "cancel",
    "message",
    "continue",
    "answer",
    "try-tool",
    "files-upload",
    "file-delete",
    *OF_SCHEDULES,
    *OF_TRIGGERS,
    *OWN_SETTINGS,
    *DECISIONS,
    *UNDO_BULK,
    *OF_GRANTS,
    *RULES,
)
MODELS: tuple[type[Model], ...] = (
    *(
        Approval,
        AuditEntry,
        Claim,
        Deputy,
        Membership,
        PolicyDraft,
        Run,
        SavedView,
        Schedule,
        Snooze,
        StandingGrant,
    ),
    *(
        WithheldBulk,
        Channel,
        Delivery,
        FollowedRun,
        NoticeChoices,
        AgentKey,
        Trigger,
        ReceivedMessage,
        Webhook,
    ),
    WebhookDelivery,
)
OF_ONE = (
    *(
        "trigger-switch",
        "trigger-renew",
        "trigger-remove",
        "webhook-switch",
        "webhook-rotate",
        "webhook-remove",
    ),
    *(
        "cancel",
        "follow",
        "message",
        "continue",
        "answer",
        "shadow-start",
        "shadow-stop",
        *DECISIONS,
    ),
)
"""Actions on one run, card or draft that has its own page."""
OPEN = (
    *(
        "login",
        "logout",
        "service-worker",
        "public-keys",
        "join-link",
        "join",
        "new-password-link",
        "new-password",
    ),
    *("hook", "not-offered"),
)
LISTS_OF_THINGS = ("records", "records-import", "drafts", "files", "schedules", "grants")
LISTS_OF_ADMINS = ("audit", "oversight", "simulator", "webhooks", "restored-limits")
LISTS = (
    *(
        "home",
        "employees",
        "runs",
        "approvals",
        "who-may-decide",
        "tools",
        "users",
        "stop",
        "search",
    ),
    *("notices", "notifications", "agents", "asks", "triggers"),
    *LISTS_OF_ADMINS,
    *LISTS_OF_THINGS,
)
WITHOUT_ROW = (
    *LISTS,
    "theme",
    "own-password",
    "preferences",
    "deputies",
    "audit-export",
    "oversight-export",
    "records-export",
    "audit-verify",
    "invite",
    "files-upload",
    "tool",
    "try-tool",
    "schedule-create",
    "trigger-create",
    "save-view",
    "grant-new",
    "action-level",
    "simulator-save",
    "notice-choices",
    "channel-add",
    "browser-add",
)
OF_ROLES = (
    dict.fromkeys(
        (
            "cancel",
            "message",
            "continue",
            "answer",
            "try-tool",
            "files-upload",
            *OF_SCHEDULES,
            *OF_TRIGGERS,
        ),
        "operator",
    )
    | dict.fromkeys((*DECISIONS, *UNDO_BULK, *OF_GRANTS, "file-delete"), "approver")
    | dict.fromkeys(RULES, "admin")
)


@pytest.fixture
def world(settings: Settings, tmp_path: Path) -> World:
    settings.GADGET_FILES_DIR = tmp_path
    return make_world()


def test_every_address_is_listed_here() -> None:
    assert {pattern.name for pattern in urlpatterns} == {*READ, *ACTS, *OPEN}


@pytest.mark.parametrize("name", [*READ, *ACTS])
def test_logged_out_people_and_agents_are_redirected_to_the_login(world: World, name: str) -> None:
    path = build_address(world, name)
    secret = issue_key(world.member("approver"), world.employee.pk, "Laptop", 30)[1]
    agent = {"Authorization": f"Bearer {secret}"}
    for headers in ({}, agent):
        ask: Callable[..., Any] = nobody().get if name in READ else nobody().post
        response = ask(path, headers=headers)
        assert response.status_code == 302
        assert response["Location"].startswith("/login/")
    assert Approval.objects.get().status == ApprovalStatus.PENDING, "an agent key opens no page"


@pytest.mark.parametrize("name", [name for name in (*READ, *ACTS) if name not in WITHOUT_ROW])
def test_rows_of_another_organization_return_404(world: World, name: str) -> None:
    path = build_address(world, name)
    client = world.client("outsider")
    response = (
        client.get(path)
        if name in READ
        else client.post(path, {"organization": world.acme.pk, "text": "x"})
    )
    assert response.status_code == 404


@pytest.mark.parametrize("name", LISTS)
def test_lists_do_not_show_rows_of_another_organization(world: World, name: str) -> None:
    for make_row in make_fillers(world).values():
        make_row()
    path = build_address(world, name)
    assert b"Acme" not in world.client("outsider").get(path).content


@pytest.mark.parametrize(("name", "needed"), OF_ROLES.items())
def test_a_lower_role_is_refused(world: World, name: str, needed: str) -> None:
    path = build_address(world, name)
    lesser = "viewer" if needed == "operator" else "operator"
    assert (
        world.client(lesser)
        .post(path, {"text": "x", "digest": "x", "outcome": "succeeded", "reason": "x"})
        .status_code
        == 403
    )
    assert Approval.objects.get().status == ApprovalStatus.PENDING


@pytest.mark.parametrize("name", OF_ADMINS)
def test_admin_pages_are_refused_to_every_role_but_admin(world: World, name: str) -> None:
    path = build_address(world, name)
    assert {role: world.client(role).get(path).status_code for role in Role.values} == {
        **dict.fromkeys(Role.values, 403),
        "admin": 200,
    }


@pytest.mark.parametrize("name", ACTS)
def test_a_get_request_changes_nothing_and_redirects_to_the_page_with_the_form(
    world: World, name: str
) -> None:
    path = build_address(world, name)
    before = list_rows()
    admin = world.client("admin")
    for response in (admin.get(path), admin.head(path)):
        assert response.status_code == 302
        assert response["Location"] == find_form_page(path, name)
    assert admin.get(find_form_page(path, name)).status_code == 200
    assert list_rows() == before


def list_rows() -> list[dict[str, Any]]:
    """List all rows that an action could change."""
    return [row for model in MODELS for row in model._default_manager.values()]


def find_form_page(path: str, name: str) -> str:
    """Return the address of the page that contains the form for this action."""
    if name in OF_ONE:
        return path.removesuffix(path.rstrip("/").rpartition("/")[2] + "/")
    if name == "deputy-end":
        return "/account/deputies/"
    return "/" if name in ("switch-organization", "theme") else f"/{path.split('/')[1]}/"


def test_a_get_request_to_the_logout_page_does_not_log_out(world: World) -> None:
    client = world.client("viewer")
    assert client.get("/logout/")["Location"] == "/"
    assert client.get("/").status_code == 200


def test_an_unsupported_http_method_is_refused_with_a_page(world: World) -> None:
    response = world.client("admin").put(build_address(world, "approve"))
    assert (response.status_code, response["Allow"]) == (405, "POST")
    assert "This address does not accept this kind of request." in response.content.decode()


@pytest.mark.parametrize("name", ACTS)
def test_a_form_without_a_csrf_token_is_refused(world: World, name: str) -> None:
    path = build_address(world, name)
    client = nobody(needs_csrf=True)
    client.force_login(world.users["admin"])
    assert client.post(path, {"digest": Approval.objects.get().digest}).status_code == 403
    assert Approval.objects.get().status == ApprovalStatus.PENDING


def test_people_without_an_organization_see_a_page_that_says_so(world: World) -> None:
    response = world.client("stranger").get("/")
    assert response.status_code == 403
    assert b"do not belong to an organization" in response.content


def test_an_id_beyond_the_database_range_returns_404(world: World) -> None:
    assert world.client("viewer").get(f"/runs/{10**30}/").status_code == 404
    assert world.client("viewer").get(f"/approvals/{10**30}/").status_code == 404


def test_after_switching_only_the_rows_of_the_chosen_organization_are_shown(world: World) -> None:
    Membership.objects.create(
        organization=world.acme, user=world.users["outsider"], role=Role.VIEWER
    )
    run = world.run(RunStatus.SUCCEEDED)
    client = world.client("outsider")
    client.post("/switch-organization/", {"organization": world.globex.pk})
    assert client.get(f"/runs/{run.pk}/").status_code == 404
    client.post("/switch-organization/", {"organization": world.acme.pk})
    assert client.get(f"/runs/{run.pk}/").status_code == 200
    assert client.post("/switch-organization/", {"organization": 999}).status_code == 404


def test_pages_have_a_strict_content_security_policy(world: World) -> None:
    policy = world.client("viewer").get("/")["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "script-src 'self'" in policy
