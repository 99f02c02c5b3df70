"""Members and their roles: admins manage their own organization, and cannot give anyone rights
beyond it."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.accounts.models import AuditEntry, Membership, Organization, Role
from tests.admin.rows import address, confirmed, faults, filled_form
from tests.world import World

pytestmark = pytest.mark.django_db

PASSWORD = "correct-horse-battery"

LIMITS = {"confirm_count": 50, "confirm_percent": 20}


def new_member(organization: Organization, **changes: str) -> dict[str, object]:
    return {
        "organization": organization.pk,
        "username": "newbie",
        "password": PASSWORD,
        "role": "operator",
        **changes,
    }


@pytest.fixture
def root(world: World) -> Client:
    world.users["root"] = User.objects.create_superuser("root")
    return world.client("root")


def test_a_superuser_can_add_a_member_with_a_new_account(world: World, root: Client) -> None:
    response = root.post(address(Membership, "add"), new_member(world.acme))
    assert response.status_code == 302, faults(response)
    user = User.objects.get(username="newbie")
    assert user.check_password(PASSWORD)
    assert (user.is_staff, user.is_superuser) == (False, False)
    assert Membership.objects.get(user=user).role == Role.OPERATOR
    entry = AuditEntry.objects.get(organization=world.acme)
    assert entry.action == "membership_added"
    assert PASSWORD not in str(entry.payload)


@pytest.mark.parametrize("password", ["", "short", "password1234"])
def test_a_weak_first_password_is_refused(world: World, root: Client, password: str) -> None:
    assert "password" in faults(
        root.post(address(Membership, "add"), new_member(world.acme, password=password))
    )
    assert not User.objects.filter(username="newbie").exists()


@pytest.mark.parametrize(
    "username", ["newbie", "outsider", "viewer", "admin", "a name that cannot be"]
)
def test_an_admin_who_adds_an_account_is_redirected_to_invitations_even_if_the_account_exists(
    world: World, admin: Client, username: str
) -> None:
    before = list(User.objects.values_list("username", "password")), Membership.objects.count()
    path = address(Membership, "add")
    for response in (admin.get(path), admin.post(path, new_member(world.acme, username=username))):
        assert (response.status_code, response["Location"]) == (302, "/users/")
    page = admin.get("/users/").content.decode()
    assert "Invite people with a link." in page
    assert username not in page or username in ("viewer", "admin")
    assert (
        list(User.objects.values_list("username", "password")),
        Membership.objects.count(),
    ) == before


def test_a_person_who_is_not_an_admin_is_redirected_to_the_login(world: World) -> None:
    assert (
        world.client("operator")
        .get(address(Membership, "add"))["Location"]
        .startswith("/admin/login/")
    )


def test_adding_an_existing_account_keeps_its_password(world: World, root: Client) -> None:
    assert "password" in faults(
        root.post(address(Membership, "add"), new_member(world.acme, username="stranger"))
    )
    sent = new_member(world.acme, username="stranger", password="")
    assert root.post(address(Membership, "add"), sent).status_code == 302
    assert "username" in faults(root.post(address(Membership, "add"), sent))


def test_a_superuser_can_add_a_member_of_another_organization(world: World, root: Client) -> None:
    sent = new_member(world.acme, username="outsider", password="")
    assert root.post(address(Membership, "add"), sent).status_code == 302
    assert world.users["outsider"].memberships.count() == 2


def test_an_admin_of_two_organizations_can_change_a_role_in_the_second(
    world: World, admin: Client
) -> None:
    Membership.objects.create(organization=world.globex, user=world.users["admin"], role="admin")
    member = Membership.objects.create(
        organization=world.globex, user=world.users["stranger"], role="viewer"
    )
    path = address(member, "change")
    assert admin.post(path, filled_form(admin, path, role="operator")).status_code == 302
    member.refresh_from_db()
    assert member.role == "operator"


def test_becoming_an_admin_gives_access_to_the_admin_and_losing_the_role_removes_it(
    world: World, admin: Client
) -> None:
    member = world.member("approver")
    path = address(member, "change")
    made_admin = confirmed(admin, path, filled_form(admin, path, role="admin"))
    assert admin.post(path, made_admin).status_code == 302
    assert world.client("approver").get("/admin/employees/employee/").status_code == 200
    demoted = confirmed(admin, path, filled_form(admin, path, role="approver"))
    assert admin.post(path, demoted).status_code == 302
    assert world.client("approver").get("/admin/").status_code == 302
    assert admin.post(path, made_admin).status_code == 302
    assert admin.post(address(member, "delete"), {"post": "yes"}).status_code == 302
    world.users["approver"].refresh_from_db()
    assert not world.users["approver"].is_staff


def test_even_a_superuser_cannot_remove_the_last_admin(world: World, root: Client) -> None:
    last = world.member("admin")
    path = address(last, "change")
    response = root.post(
        path, confirmed(root, path, filled_form(root, path, role="viewer")), follow=True
    )
    assert "admin is the last admin" in response.content.decode()
    response = root.post(address(last, "delete"), {"post": "yes"}, follow=True)
    assert "admin is the last admin" in response.content.decode()
    last.refresh_from_db()
    assert last.role == Role.ADMIN
    assert not AuditEntry.objects.exists()


def test_changing_and_deleting_a_member_are_audited_with_the_role(
    world: World, admin: Client
) -> None:
    member = world.member("viewer")
    path = address(member, "change")
    assert admin.post(path, filled_form(admin, path, role="operator")).status_code == 302
    assert admin.post(address(member, "delete"), {"post": "yes"}).status_code == 302
    changed, deleted = AuditEntry.objects.order_by("seq")
    assert (changed.actor, changed.action) == ("user:admin", "membership_changed")
    assert changed.payload["fields"] == {"role": {"before": "viewer", "after": "operator"}}
    assert (deleted.action, deleted.payload["fields"]) == (
        "membership_deleted",
        {"role": "operator"},
    )


def test_nobody_can_change_or_remove_their_own_membership(world: World, admin: Client) -> None:
    own = world.member("admin")
    assert admin.post(address(own, "change"), {"role": "viewer"}).status_code == 403
    assert admin.post(address(own, "delete"), {"post": "yes"}).status_code == 403
    assert world.member("admin").role == Role.ADMIN


def test_posted_fields_that_are_not_in_the_form_are_ignored(world: World, admin: Client) -> None:
    member = world.member("viewer")
    path = address(member, "change")
    sent = filled_form(
        admin,
        path,
        role="operator",
        organization=world.globex.pk,
        user=world.users["outsider"].pk,
        is_superuser="on",
    )
    assert admin.post(path, sent).status_code == 302
    member.refresh_from_db()
    assert (member.organization, member.user, member.role) == (
        world.acme,
        world.users["viewer"],
        Role.OPERATOR,
    )
    assert not User.objects.filter(is_superuser=True).exists()


def test_an_admin_can_change_an_organizations_settings_but_not_its_slug_or_plan(
    world: World, admin: Client
) -> None:
    path = address(world.acme, "change")
    sent = {"name": "Acme Ltd", "four_eyes": "on", "card_days": 3, "currency": "USD", **LIMITS}
    sent |= {"slug": "globex-2", "plan_features": "everything"}
    response = admin.post(path, sent)
    assert response.status_code == 302, faults(response)
    world.acme.refresh_from_db()
    assert (world.acme.name, world.acme.four_eyes, world.acme.card_days) == ("Acme Ltd", True, 3)
    assert (world.acme.slug, world.acme.plan_features) == ("acme", [])


def test_only_a_superuser_creates_an_organization_and_nobody_deletes_one(
    world: World, admin: Client, root: Client
) -> None:
    sent = {
        "name": "Initech",
        "slug": "initech",
        "card_days": 7,
        "currency": "USD",
        **LIMITS,
        "plan_features": "sso\nmcp",
    }
    assert admin.post(address(Organization, "add"), sent).status_code == 403
    assert root.post(address(Organization, "add"), sent).status_code == 302
    assert Organization.objects.get(slug="initech").plan_features == ["sso", "mcp"]
    for client in (admin, root):
        assert client.post(address(world.acme, "delete"), {"post": "yes"}).status_code == 403
