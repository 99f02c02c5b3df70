"""Dangerous changes are saved only after their consequences are confirmed."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client

from agents.accounts.models import AuditEntry, Membership
from agents.employees.models import Grant, ModelProvider, ProviderKind
from tests.admin.rows import address, confirmed, consequences, faults, filled_form
from tests.world import DELETE, SEARCH, UPDATE, World

pytestmark = [pytest.mark.django_db, pytest.mark.once]


@pytest.fixture
def real(world: World) -> ModelProvider:
    return ModelProvider.objects.create(
        organization=world.acme,
        name="Real",
        kind=ProviderKind.OPENAI,
        base_url="https://one.example/v1",
    )


def asked(client: Client, row: Model, **changes: Any) -> list[str]:
    """Send this change of the row, which must not be saved, and return the sentences to confirm."""
    path = address(row, "change")
    before = AuditEntry.objects.count()
    response = client.post(path, filled_form(client, path, **changes))
    assert AuditEntry.objects.count() == before
    assert list(faults(response)) == ["confirmed"]
    assert response.content.decode().count('name="confirmed"') == len(consequences(response))
    return list(consequences(response).values())


def test_a_harmless_change_is_saved_without_confirmation(world: World, admin: Client) -> None:
    path = address(world.employee, "change")
    assert b"confirmed" not in admin.get(path).content
    assert admin.post(path, filled_form(admin, path, job_title="Clerk")).status_code == 302


def test_granting_destructive_tools_lists_them_for_confirmation(
    world: World, admin: Client
) -> None:
    Grant.objects.filter(employee=world.employee).exclude(tool=SEARCH).delete()
    (sentence,) = asked(admin, world.employee, allowed_tools=[SEARCH, UPDATE, DELETE])
    assert "Delete record" in sentence
    assert "Update" not in sentence
    path = address(world.employee, "change")
    sent = filled_form(admin, path, allowed_tools=[SEARCH, UPDATE, DELETE])
    assert admin.post(path, confirmed(admin, path, sent)).status_code == 302
    assert set(world.employee.grants.values_list("tool", flat=True)) == {SEARCH, UPDATE, DELETE}
    kept = AuditEntry.objects.latest("seq").payload["fields"]
    assert set(kept) == {"allowed_tools"}


def test_a_ticked_checkbox_confirms_only_its_own_sentence(world: World, admin: Client) -> None:
    Grant.objects.filter(employee=world.employee).delete()
    path = address(world.employee, "change")
    sent = confirmed(admin, path, filled_form(admin, path, allowed_tools=[DELETE]))
    more = {**sent, "allowed_tools": [DELETE, "data.archiveAll"]}
    assert list(faults(admin.post(path, more))) == ["confirmed"]
    assert not world.employee.grants.exists()


def test_a_new_provider_or_server_needs_confirmation_that_names_the_affected_employee(
    world: World, admin: Client, real: ModelProvider
) -> None:
    (sentence,) = asked(admin, world.employee, provider=real.pk, model="gpt")
    assert (
        sentence
        == f"From now on, Real receives the instructions of {world.employee.name} and everything it reads."
    )
    world.employee.provider = real
    world.employee.save()
    (sentence,) = asked(admin, real, base_url="https://two.example/v1", forget_key=None)
    assert "https://two.example/v1" in sentence
    assert world.employee.name in sentence


def test_confirming_without_retyping_the_key_asks_again_and_says_that_the_key_is_removed(
    world: World, admin: Client, real: ModelProvider
) -> None:
    world.employee.provider = real
    world.employee.is_active = False
    world.employee.save()
    path = address(real, "change")
    response = admin.post(
        path, filled_form(admin, path, base_url="https://two.example/v1", new_key="sk-new")
    )
    assert set(faults(response)) == {"confirmed", "new_key"}
    (sentence,) = consequences(response).values()
    assert sentence.endswith("with the new key.")
    again = filled_form(
        admin, path, base_url="https://two.example/v1", confirmed=list(consequences(response))
    )
    response = admin.post(path, again)
    (sentence,) = consequences(response).values()
    assert sentence.endswith("without a key.")
    real.refresh_from_db()
    assert real.base_url == "https://one.example/v1"


def test_replacing_a_script_with_a_model_needs_confirmation(world: World, admin: Client) -> None:
    provider = world.employee.provider
    (sentence,) = asked(admin, provider, kind="openai", base_url="https://one.example/v1")
    assert world.employee.name in sentence


def test_switching_off_a_provider_lists_the_employees_whose_runs_end(
    world: World, admin: Client, real: ModelProvider
) -> None:
    world.employee.provider = real
    world.employee.save()
    (sentence,) = asked(admin, real, is_active=None)
    assert world.employee.name in sentence


def test_disabling_the_two_person_rule_and_creating_an_admin_need_confirmation(
    world: World, admin: Client
) -> None:
    world.acme.four_eyes = True
    world.acme.save()
    (sentence,) = asked(admin, world.acme, four_eyes=None)
    assert "started themselves" in sentence
    (sentence,) = asked(admin, world.member("operator"), role="admin")
    assert sentence.startswith("operator can change everything")
    new = {
        "organization": world.acme.pk,
        "username": "ada",
        "password": "quite-a-secret-9",
        "role": "admin",
    }
    path = address(Membership, "add")
    world.users["root"] = User.objects.create_superuser("root")
    root = world.client("root")
    response = root.post(path, new)
    assert set(faults(response)) == {"confirmed", "password"}
    sent = {**new, "confirmed": list(consequences(response))}
    assert set(faults(root.post(path, {**sent, "password": ""}))) == {"password"}
    assert root.post(path, sent).status_code == 302
    assert Membership.objects.get(user__username="ada").role == "admin"


def test_a_person_with_read_access_is_not_asked_for_confirmation(
    world: World, admin: Client
) -> None:
    own = admin.get(address(world.member("admin"), "change"))
    assert own.status_code == 200
    assert b"confirmed" not in own.content
