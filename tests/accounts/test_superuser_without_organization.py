"""A superuser without an organization is sent to the admin, where organizations are created."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.accounts.models import AuditEntry, Organization, Role

pytestmark = [pytest.mark.django_db, pytest.mark.once]
PASSWORD = "a long enough secret"


@pytest.fixture
def root() -> User:
    return User.objects.create_superuser("root", password=PASSWORD)


def test_a_superuser_without_an_organization_reaches_the_admin_after_login(root: User) -> None:
    response = Client().post("/login/", {"username": "root", "password": PASSWORD}, follow=True)
    assert response.redirect_chain[-1] == ("/admin/", 302)
    assert response.status_code == 200


@pytest.mark.parametrize("path", ["/", "/runs/", "/approvals/"])
def test_a_superuser_without_an_organization_is_redirected_from_every_page_to_the_admin(
    root: User, path: str
) -> None:
    client = Client()
    client.force_login(root)
    response = client.get(path)
    assert (response.status_code, response["Location"]) == (302, "/admin/")


def test_a_form_posted_without_an_organization_is_refused_and_not_redirected(root: User) -> None:
    client = Client()
    client.force_login(root)
    assert client.post("/", {"task": "Anything"}).status_code == 403


def test_a_superuser_becomes_an_admin_of_the_organization_that_they_create(root: User) -> None:
    client = Client()
    client.force_login(root)
    form = {
        "name": "Acme",
        "slug": "acme",
        "card_days": 7,
        "confirm_count": 50,
        "confirm_percent": 20,
        "currency": "EUR",
    }
    response = client.post("/admin/accounts/organization/add/", form, follow=True)
    assert "You are an admin of Acme." in response.content.decode()
    member = root.memberships.get()
    assert (member.organization.slug, member.role) == ("acme", Role.ADMIN)
    assert AuditEntry.objects.filter(
        organization=member.organization, action="membership_added"
    ).exists()
    assert client.get("/").status_code == 200
    client.post("/admin/accounts/organization/add/", {**form, "name": "Other", "slug": "other"})
    assert Organization.objects.count() == 2
    assert root.memberships.count() == 1, (
        "control: a member of one organization joins no other automatically"
    )


def test_other_people_without_an_organization_get_an_explanation() -> None:
    client = Client()
    client.force_login(User.objects.create_user("ann", password=PASSWORD, is_staff=True))
    response = client.get("/")
    assert response.status_code == 403
    assert "do not belong to an organization" in response.content.decode()
