"""The admin shows only the rows of organizations in which the person is an admin."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.db.models import ForeignKey

from agents.admin.scope import PATH_TO_ORGANIZATION, ScopedAdmin
from tests.admin.rows import address, one_of_each
from tests.world import World

pytestmark = pytest.mark.django_db

SCOPED = {
    model: page for model, page in admin.site._registry.items() if isinstance(page, ScopedAdmin)
}


def test_every_model_of_the_project_is_scoped() -> None:
    ours = [
        model
        for model in admin.site._registry
        if model.__module__.startswith(("agents.", "tools."))
    ]
    assert set(ours) == set(SCOPED)
    assert set(SCOPED) <= set(PATH_TO_ORGANIZATION)


def test_every_model_that_a_form_can_select_is_scoped() -> None:
    for model in SCOPED:
        for field in model._meta.get_fields():
            if isinstance(field, ForeignKey) and field.editable:
                assert field.related_model in PATH_TO_ORGANIZATION, f"{model.__name__}.{field.name}"


def test_every_filter_offers_only_rows_of_the_admins_own_organization(world: World) -> None:
    client = world.client("outsider")
    one_of_each(world)
    for model in SCOPED:
        body = client.get(address(model, "list")).content.decode()
        assert "Acme" not in body, model
        assert "Dana" not in body, model


def test_an_admin_sees_the_rows_of_their_organization(world: World) -> None:
    rows = one_of_each(world)
    assert {type(row) for row in rows} == set(SCOPED), (
        "one_of_each has a row of every registered model"
    )
    client = world.client("admin")
    for row in rows:
        assert f"/{row.pk}/change/" in client.get(address(row, "list")).content.decode(), row
        assert client.get(address(row, "change")).status_code == 200, row
        assert client.get(address(row, "history")).status_code == 200, row


def test_an_admin_of_another_organization_sees_none_of_the_rows(world: World) -> None:
    client = world.client("outsider")
    for row in one_of_each(world):
        listed = client.get(address(row, "list"))
        assert listed.status_code == 200
        assert row not in set(listed.context["cl"].result_list), row
        for page in ("change", "delete", "history"):
            response = client.get(address(row, page))
            assert response.status_code in {302, 403, 404}, (row, page)
        for page in ("change", "delete"):
            assert client.post(address(row, page), {"post": "yes"}).status_code in {
                302,
                403,
                404,
            }, (row, page)
        assert type(row)._default_manager.filter(pk=row.pk).exists()


def test_a_filter_in_the_address_never_lists_rows_of_another_organization(world: World) -> None:
    one_of_each(world)
    client = world.client("outsider")
    response = client.get(f"/admin/runs/run/?organization__id__exact={world.acme.pk}")
    assert response.status_code == 200
    assert not list(response.context["cl"].result_list)


@pytest.mark.parametrize("username", ["viewer", "operator", "approver", "stranger"])
def test_people_who_are_not_admins_are_redirected_to_the_login(world: World, username: str) -> None:
    client = world.client(username)
    for path in ("/admin/", "/admin/runs/run/", "/admin/employees/employee/add/"):
        assert client.get(path).status_code == 302
        assert client.get(path)["Location"].startswith("/admin/login/")


def test_a_person_with_staff_access_who_is_not_an_admin_cannot_see_any_rows(world: World) -> None:
    User.objects.filter(username="approver").update(is_staff=True)
    world.users["approver"].user_permissions.set(Permission.objects.all())
    client = world.client("approver")
    for row in one_of_each(world):
        assert client.get(address(row, "list")).status_code == 403, row
        assert client.get(address(row, "change")).status_code == 403, row


def test_only_superusers_can_open_the_account_pages(world: World) -> None:
    world.users["admin"].user_permissions.set(Permission.objects.all())
    client = world.client("admin")
    target = world.users["viewer"]
    for path in (
        "/admin/auth/user/",
        "/admin/auth/user/add/",
        f"/admin/auth/user/{target.pk}/change/",
    ):
        assert client.get(path).status_code == 403, path
    assert client.get(f"/admin/auth/user/{target.pk}/password/").status_code == 403
    assert client.get("/admin/auth/group/").status_code == 404


def test_a_superuser_sees_the_rows_of_all_organizations(world: World) -> None:
    root = User.objects.create_superuser("root", password="not-used-here")
    world.users["root"] = root
    client = world.client("root")
    for row in one_of_each(world):
        assert client.get(address(row, "change")).status_code == 200, row
    assert client.get("/admin/auth/user/").status_code == 200
    assert client.get(f"/admin/auth/user/{root.pk}/change/").status_code == 200
