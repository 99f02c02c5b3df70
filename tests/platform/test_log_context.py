"""The log knows the organization of a request or run, so that it hides that organization's secrets,
even short ones."""

import pytest

from agents.accounts.membership import issue_token
from agents.platform.log_context import get_logged_organization, log_for_nobody
from tests.world import World, make_world, nobody

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    log_for_nobody()
    return make_world()


def test_a_page_request_sets_the_members_organization(world: World) -> None:
    world.client("outsider").get("/")
    assert get_logged_organization() == world.globex.pk


def test_an_api_request_sets_the_organization_of_its_token(world: World) -> None:
    _, secret = issue_token(world.member("operator"), "tests")
    world.client("outsider").get("/api/employees", headers={"authorization": f"Bearer {secret}"})
    assert get_logged_organization() == world.acme.pk


def test_a_request_of_a_stranger_does_not_set_an_organization(world: World) -> None:
    assert nobody().get("/login/").status_code == 200
    assert get_logged_organization() is None
