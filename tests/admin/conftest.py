"""The organizations of the admin tests, and an admin's client."""

from __future__ import annotations

import pytest
from django.test import Client

from agents.approval_rules.models import ApproverGroup
from tests.admin.rows import make_admin_world
from tests.admin.ruling import make_group
from tests.world import World


@pytest.fixture
def world() -> World:
    return make_admin_world()


@pytest.fixture
def admin(world: World) -> Client:
    return world.client("admin")


@pytest.fixture
def finance(world: World) -> ApproverGroup:
    """A group with both approvers of Acme: its admin and its approver."""
    return make_group(world, "Finance", "approver", "admin")
