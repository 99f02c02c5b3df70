"""No response tells an admin whether somebody has an account in another organization, however often
the admin asks."""

from __future__ import annotations

import pytest

from agents.accounts import invitations
from agents.accounts.models import Invitation
from tests.web.test_users import invite, open_link, sign_up
from tests.world import World, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return make_world()


def test_free_and_taken_names_are_refused_alike_after_repeated_invitations(
    world: World,
) -> None:
    for _ in range(invitations.MAX_TRIES_TOGETHER // invitations.MAX_TRIES):
        client = open_link(invite(world))
        for _ in range(invitations.MAX_TRIES):
            sign_up(client, "OutSider")
        invitations.revoke(world.member("admin"), Invitation.objects.latest("pk").pk)
    client = open_link(invite(world))
    refused = [sign_up(client, name) for name in ("OutSider", "ada")]
    assert [response.status_code for response in refused] == [409, 409]
    assert Invitation.objects.latest("pk").tries == 0
    Invitation.objects.exclude(pk=Invitation.objects.latest("pk").pk).update(
        organization=world.globex
    )
    assert sign_up(client, "ada").status_code == 302, (
        "another organization's tries count for nobody else"
    )
