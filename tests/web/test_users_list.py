"""The list of users: its contents for each role, its pages, its search, and hostile names."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.accounts import invitations
from agents.accounts.models import Membership, Role
from tests.web.test_users import read_page
from tests.world import World

pytestmark = pytest.mark.django_db


def test_everybody_can_see_the_members_and_only_admins_can_change_them(world: World) -> None:
    seen, ruled = read_page(world.client("viewer")), read_page(world.client("admin"))
    for role in Role.values:
        assert f"role-{role}" in seen
    assert "outsider" not in ruled
    for part in ("/users/invite/", "Save role", "Remove <strong", "Create password link"):
        assert part not in seen
        assert part in ruled


def test_the_list_continues_after_its_cursor_and_searches_names(world: World) -> None:
    for number in range(60):
        user = User.objects.create_user(f"person-{number:02}")
        Membership.objects.create(organization=world.acme, user=user)
    first = read_page(world.client("viewer"))
    assert "person-00" in first
    assert "person-59" not in first
    found = re.search(r'\?(after=[^"]+)" rel="next"', first)
    assert found is not None
    assert "person-59" in read_page(world.client("viewer"), f"/users/?{found[1]}")
    only = read_page(world.client("viewer"), "/users/?q=person-33")
    assert "person-33" in only
    assert "person-34" not in only


def test_the_list_needs_a_constant_number_of_queries(
    world: World, django_assert_max_num_queries: Any
) -> None:
    for number in range(30):
        user = User.objects.create_user(f"person-{number:02}")
        Membership.objects.create(organization=world.acme, user=user)
        invitations.invite(world.member("admin"), invitations.Offer(role="viewer"))
    client = world.client("admin")
    read_page(client)
    with django_assert_max_num_queries(9):
        read_page(client)


def test_hostile_names_are_escaped(world: World) -> None:
    offer = invitations.Offer(role="operator", note="<b>Ada\u202e</b>")
    invitations.invite(world.member("admin"), offer)
    html = read_page(world.client("admin"))
    assert "<b>Ada" not in html
    assert "⟦U+202E⟧" in html
