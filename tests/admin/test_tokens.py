"""API tokens: shown once, stored as a hash, created only for oneself, and revoked permanently."""

import pytest
from django.test import Client

from agents.accounts.membership import authenticate_token, hash_secret, issue_token
from agents.accounts.models import ApiToken, AuditEntry
from tests.admin.rows import address, faults
from tests.world import World

pytestmark = pytest.mark.django_db


def test_a_new_token_is_shown_once_and_gives_access_to_the_api(world: World, admin: Client) -> None:
    member = world.member("admin")
    response = admin.post(address(ApiToken, "add"), {"membership": member.pk, "name": "CI"})
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    secret = response.context["secret"]
    assert secret in response.content.decode()
    assert authenticate_token(secret) == member
    token = ApiToken.objects.get()
    assert token.hash == hash_secret(secret)
    for page in ("list", "change", "history"):
        body = admin.get(address(token, page)).content.decode()
        assert secret not in body
        assert token.hash not in body
    assert secret not in str(AuditEntry.objects.get().payload)


def test_the_index_spells_api_tokens_with_capitals(admin: Client) -> None:
    html = admin.get("/admin/").content.decode()
    assert "API tokens" in html
    assert "Api tokens" not in html


def test_nobody_can_create_a_token_in_the_name_of_another_person(
    world: World, admin: Client
) -> None:
    for name in ("approver", "outsider"):
        sent = {"membership": world.member(name).pk, "name": "Not mine"}
        assert "membership" in faults(admin.post(address(ApiToken, "add"), sent))
    assert not ApiToken.objects.exists()


def test_an_admin_can_permanently_revoke_a_members_token(world: World, admin: Client) -> None:
    token, secret = issue_token(world.member("operator"), "Laptop")
    path = address(token, "change")
    assert admin.post(path, {"revoke": "on"}).status_code == 302
    assert authenticate_token(secret) is None
    revoked_at = ApiToken.objects.get().revoked_at
    assert admin.post(path, {}).status_code == 302
    assert ApiToken.objects.get().revoked_at == revoked_at
    assert admin.post(address(token, "delete"), {"post": "yes"}).status_code == 403
