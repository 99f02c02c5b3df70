"""API tokens: they are printed once, stored as a hash, carry the rights of one membership, and are
refused after they are revoked."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now

from agents.accounts.membership import hash_secret, issue_token
from agents.accounts.models import ApiToken, AuditEntry, Membership, Role
from tests.audit_chain import verify_audit
from tests.world import World, nobody, post, problem

pytestmark = pytest.mark.django_db


def token_of(*arguments: str) -> str:
    output = io.StringIO()
    call_command("create_api_token", *arguments, stdout=output, stderr=io.StringIO())
    return output.getvalue().strip()


def get(path: str, token: str, scheme: str = "Bearer") -> Any:
    return nobody(needs_csrf=True).get(path, headers={"authorization": f"{scheme} {token}"})


def test_a_new_token_acts_as_its_member(world: World) -> None:
    world.run()
    secret = token_of("operator", "--name", "invoices")
    assert len(get("/api/runs", secret).json()["items"]) == 1
    assert get("/api/runs", token_of("outsider")).json()["items"] == []
    assert get("/api/runs", secret, scheme="bearer").status_code == 200


def test_only_the_hash_of_a_token_is_stored(world: World) -> None:
    secret = token_of("operator", "--name", "invoices")
    token = ApiToken.objects.get()
    assert (token.name, token.hash) == ("invoices", hash_secret(secret))
    assert secret not in str(ApiToken.objects.values()[0])
    assert token.membership == world.member("operator")


def test_creating_a_token_is_audited(world: World) -> None:
    token_of("operator")
    entry = AuditEntry.objects.get(organization=world.acme)
    assert entry.action == "token_created"
    assert entry.payload["user"] == "operator"
    assert verify_audit(world.acme.pk) == []


def test_a_token_can_change_things_without_csrf(world: World) -> None:
    secret = token_of("operator")
    body = {"employee_id": str(world.employee.pk), "task": "Search."}
    client = nobody(needs_csrf=True)
    assert post(client, "/api/runs", body, authorization=f"Bearer {secret}").status_code == 201


def test_a_viewers_token_cannot_start_a_run(world: World) -> None:
    body = {"employee_id": str(world.employee.pk), "task": "Search."}
    response = post(nobody(), "/api/runs", body, authorization=f"Bearer {token_of('viewer')}")
    problem(response, 403)


def test_a_revoked_token_is_refused(world: World) -> None:
    secret = token_of("operator")
    ApiToken.objects.update(revoked_at=Now())
    problem(get("/api/runs", secret), 401)


def test_a_deactivated_users_token_is_refused(world: World) -> None:
    secret = token_of("operator")
    world.users["operator"].is_active = False
    world.users["operator"].save()
    problem(get("/api/runs", secret), 401)


def test_a_token_stops_working_when_its_membership_ends(world: World) -> None:
    secret = token_of("operator")
    world.member("operator").delete()
    problem(get("/api/runs", secret), 401)


def test_a_wrong_token_is_refused_even_with_a_valid_session(world: World) -> None:
    response = world.client("admin").get("/api/runs", headers={"authorization": "Bearer wrong"})
    problem(response, 401)


@pytest.mark.parametrize("token", ["", " ", "ä", "a" * 10_000, "gadget_\x00"])
def test_a_malformed_token_is_refused(world: World, token: str) -> None:
    problem(get("/api/runs", token), 401)


def test_another_authorization_scheme_does_not_override_the_session(world: World) -> None:
    assert (
        world.client("viewer").get("/api/runs", headers={"authorization": "Basic eDp5"}).status_code
        == 200
    )


def test_the_last_use_of_a_token_is_recorded(world: World) -> None:
    secret = token_of("operator")
    assert ApiToken.objects.get().last_used_at is None
    get("/api/runs", secret)
    assert ApiToken.objects.get().last_used_at is not None


def test_repeated_wrong_tokens_are_refused_for_a_while_and_a_valid_token_is_still_accepted(
    world: World,
) -> None:
    secret = token_of("operator")
    responses = [get("/api/runs", "wrong") for _ in range(70)]
    refused = [response for response in responses if response.status_code == 429]
    assert refused
    assert problem(refused[-1], 429)["code"] == "too_many_requests"
    assert 1 <= int(refused[-1]["Retry-After"]) <= 60
    assert get("/api/runs", secret).status_code == 200


def test_a_token_for_a_member_of_several_organizations_requires_naming_one(
    world: World,
) -> None:
    Membership.objects.create(
        organization=world.globex, user=world.users["operator"], role=Role.VIEWER
    )
    with pytest.raises(CommandError, match="acme, globex"):
        token_of("operator")
    secret = token_of("operator", "--organization", "globex")
    world.run()
    assert get("/api/runs", secret).json()["items"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody"], "no user 'nobody'.*operator"),
        (["stranger"], "not a member of any organization"),
        (["operator", "--organization", "globex"], "not a member of 'globex'.*acme"),
        (["operator", "--name", " "], "1 to 80 characters"),
        (["operator", "--name", "x" * 81], "1 to 80 characters"),
    ],
)
def test_an_invalid_argument_is_reported(world: World, arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        token_of(*arguments)
    assert not ApiToken.objects.exists()


def test_no_token_is_issued_to_a_deactivated_user(world: World) -> None:
    world.users["operator"].is_active = False
    world.users["operator"].save()
    with pytest.raises(CommandError, match="is inactive"):
        token_of("operator")


def test_two_tokens_differ(world: World) -> None:
    member = world.member("operator")
    assert issue_token(member, "a")[1] != issue_token(member, "b")[1]
