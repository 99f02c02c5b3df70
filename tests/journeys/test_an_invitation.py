"""A person is invited by a link, joins with a new or an existing account, and can start to work
immediately."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from agents.accounts.models import Membership, Role
from tests.journeys.office import Office
from tests.journeys.visitor import Visit, Visitor

pytestmark = pytest.mark.once

PASSWORD = "correct-horse-battery"


def create_invitation(admin: Visitor, note: str, role: str) -> str:
    """Create an invitation, and return the link that the page shows."""
    admin.page.goto("/users/")
    admin.page.get_by_label("Note (optional)").fill(note)
    admin.page.locator(".invite").get_by_label("Role").select_option(role)
    admin.page.get_by_role("button", name="Create invite link").click()
    expect(admin.page.get_by_role("heading", name=f"Invite link for “{note}”")).to_be_visible()
    return admin.page.get_by_label("Link", exact=True).input_value()


def fill_in(visitor: Visitor, username: str, password: str = PASSWORD) -> None:
    visitor.page.get_by_label("Username").fill(username)
    visitor.page.get_by_label("Password", exact=True).fill(password)
    visitor.page.get_by_label("Repeat password").fill(password)
    visitor.page.get_by_role("button", name="Create account and join").click()


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.every_commit
def test_a_new_colleague_joins_and_assigns_a_task(
    office: Office, visit: Visit, scripts: bool
) -> None:
    admin = visit("admin", scripts=scripts)
    link = create_invitation(admin, "Ada, sales", "operator")
    newcomer = visit(scripts=scripts)
    newcomer.page.goto(link)
    assert link.split("/")[-2] not in newcomer.page.url
    expect(newcomer.page.get_by_role("heading", name="Join Acme")).to_be_visible()
    fill_in(newcomer, "acme-admin")
    expect(newcomer.page.get_by_role("alert")).to_contain_text("is taken")
    fill_in(newcomer, "ada")
    expect(newcomer.page.get_by_role("status").first).to_contain_text(
        "Welcome to Acme. You are an operator."
    )
    office.workshop.play(answer="Done.")
    run_id = newcomer.start("Dana", "Do the work")
    office.await_end(run_id)
    late = visit(scripts=scripts)
    late.page.goto(link)
    expect(late.page.get_by_role("alert")).to_contain_text("no longer works")
    admin.page.goto("/users/")
    expect(admin.page.locator(".members")).to_contain_text("ada")
    expect(admin.page.get_by_role("heading", name="Open invitations")).to_have_count(0)


def test_an_existing_account_joins_and_later_gets_a_new_password(
    office: Office, visit: Visit
) -> None:
    User.objects.create_user("grace", password=PASSWORD)
    admin = visit("admin")
    link = create_invitation(admin, "Grace", "viewer")
    grace = visit()
    grace.page.goto(link)
    grace.page.get_by_role("link", name="Log in to join").click()
    grace.page.get_by_label("Username").fill("grace")
    grace.page.get_by_label("Password").fill(PASSWORD)
    grace.page.get_by_role("button", name="Log in").click()
    grace.page.get_by_role("button", name="Join as “grace”").click()
    expect(grace.page.get_by_role("status").first).to_contain_text(
        "Welcome to Acme. You are a viewer."
    )
    assert Membership.objects.get(user__username="grace").role == Role.VIEWER

    admin.page.goto("/users/")
    admin.page.get_by_text("Change… grace").click()
    admin.page.get_by_role("button", name="Create password link").locator("visible=true").click()
    forgetful = visit()
    forgetful.page.goto(admin.page.get_by_label("Link", exact=True).input_value())
    forgetful.page.get_by_label("New password", exact=True).fill(PASSWORD + "-2")
    forgetful.page.get_by_label("Repeat new password").fill(PASSWORD + "-2")
    forgetful.page.get_by_role("button", name="Set password").click()
    forgetful.log_in("grace", PASSWORD + "-2")
    grace.page.goto("/runs/")
    expect(grace.page.get_by_role("heading", name="Gadget")).to_be_visible()
