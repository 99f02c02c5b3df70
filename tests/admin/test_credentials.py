"""An organization's credentials can be entered but never read: no page, row or database file shows
a value."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.messages import get_messages
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from pytest_django import Settings

from agents.accounts.models import AuditEntry, Credential, Organization
from tests.admin.rows import address, faults, filled_form
from tests.features import feature
from tests.web.test_audit import export
from tests.world import World
from tools.connections.models import Source

pytestmark = pytest.mark.django_db

TOKEN = "gh-marker-9f31-of-acme"
SECRET = "signing-marker-77aa-<&>"
NAME = "marker-in-the-wrong-place"


@pytest.fixture
def github(world: World) -> Credential:
    fields = json.dumps({"token": TOKEN})
    return Credential.objects.create(
        organization=world.acme, service="github", fields=fields, changed_by="admin"
    )


def add(service: str) -> str:
    return f"{address(Credential, 'add')}?for={service}"


def kept(service: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(Credential.objects.get(service=service).fields)
    return found


def version(world: World) -> int:
    return Organization.objects.get(pk=world.acme.pk).credentials_version


def told(response: Any) -> str:
    return " ".join(str(message) for message in get_messages(response.wsgi_request))


class TestAddingCredentials:
    def test_known_services_are_offered_with_their_fields(self, admin: Client) -> None:
        choice = admin.get(address(Credential, "add")).content.decode()
        for service in ("google.cse", "github", "slack", "other"):
            assert f'href="?for={service}"' in choice
        form = admin.get(add("slack")).context["adminform"].form
        assert [name for name in form.fields if name.startswith("value_")] == [
            "value_token",
            "value_signing_secret",
        ]
        for name in ("value_token", "value_signing_secret"):
            assert 'type="password"' in str(form[name])
            assert 'autocomplete="off"' in str(form[name])

    def test_google_search_has_an_input_for_its_optional_endpoint(
        self, world: World, admin: Client
    ) -> None:
        form = admin.get(add("google.cse")).context["adminform"].form
        assert "value_endpoint" in form.fields
        sent = {"organization": world.acme.pk, "value_endpoint": "https://proxy.example/search"}
        assert admin.post(add("google.cse"), sent).status_code == 302
        assert kept("google.cse") == {"endpoint": "https://proxy.example/search"}

    def test_values_are_encrypted_and_the_audit_contains_only_field_names(
        self, world: World, admin: Client
    ) -> None:
        sent = {"organization": world.acme.pk, "value_token": TOKEN, "value_signing_secret": SECRET}
        assert admin.post(add("slack"), sent).status_code == 302
        assert kept("slack") == {"token": TOKEN, "signing_secret": SECRET}
        assert Credential.objects.get().changed_by == "admin"
        assert version(world) == 1
        entry = AuditEntry.objects.get(organization=world.acme)
        assert entry.payload["fields"] == {
            "service": "slack",
            "signing_secret": "set",
            "token": "set",
        }
        with connection.cursor() as cursor:
            cursor.execute("SELECT fields FROM accounts_credential")
            assert TOKEN not in cursor.fetchone()[0]

    def test_an_unknown_service_accepts_any_names_and_values(
        self, world: World, admin: Client
    ) -> None:
        sent = {
            "organization": world.acme.pk,
            "service": "crm.eu",
            "name_1": "user",
            "value_1": "me",
            "name_3": "key",
        }
        assert "value_3" in faults(admin.post(add("other"), sent))
        response = admin.post(add("other"), {**sent, "value_3": TOKEN})
        assert response.status_code == 302
        assert kept("crm.eu") == {"user": "me", "key": TOKEN}
        assert "user: too short to be masked in tool results" in told(response)

    @pytest.mark.parametrize(
        ("sent", "field"),
        [
            ({"value_1": TOKEN}, "name_1"),
            ({"name_1": "token", "value_1": TOKEN, "name_2": "token", "value_2": TOKEN}, "name_2"),
            ({"name_1": NAME, "value_1": TOKEN}, "name_1"),
            ({"name_1": "token", "value_1": TOKEN, "service": "no service"}, "service"),
            ({"name_1": "token", "value_1": "x" * 8_001}, "value_1"),
            ({"name_1": "token", "value_1": f"{TOKEN}\0"}, "value_1"),
            ({}, "__all__"),
        ],
    )
    def test_errors_do_not_repeat_the_typed_values(
        self, world: World, admin: Client, sent: dict[str, str], field: str
    ) -> None:
        response = admin.post(
            add("other"), {"organization": world.acme.pk, "service": "crm", **sent}
        )
        wrong = faults(response)
        assert field in wrong
        body = response.content.decode()
        assert TOKEN not in body
        assert NAME not in body
        asked_again = [name for name, value in sent.items() if name.startswith("value_") and value]
        assert set(asked_again) <= set(wrong), "a value that is gone has to be given again"
        assert not Credential.objects.exists()

    @pytest.mark.parametrize(
        ("value", "kind"),
        [
            ("127.0.0.1", "address"),
            ("localhost", "host name"),
            ("https://api.example.com/", "host name"),
            ("4711471147", "number"),
            ("database", "word"),
        ],
    )
    def test_a_common_value_is_refused_because_it_would_be_masked_everywhere(
        self, world: World, admin: Client, value: str, kind: str
    ) -> None:
        for sent in ({"value_token": value}, {"value_token": TOKEN, "value_signing_secret": value}):
            wrong = faults(admin.post(add("slack"), {"organization": world.acme.pk, **sent}))
            assert f"hide this {kind} everywhere" in str(wrong)
            assert value not in str(wrong)
        free = {
            "organization": world.acme.pk,
            "service": "crm",
            "name_1": "token",
            "value_1": value,
        }
        assert "hide this" in str(faults(admin.post(add("other"), free)))
        assert not Credential.objects.exists()

    def test_a_common_value_is_accepted_in_a_field_that_is_not_secret(
        self, world: World, admin: Client
    ) -> None:
        fields = {
            "username": "gadgetbot",
            "base_url": "https://crm.example.com",
            "customer_id": "1234567890",
        }
        named = dict(zip(("name_1", "name_2", "name_3"), fields, strict=True))
        given = dict(zip(("value_1", "value_2", "value_3"), fields.values(), strict=True))
        rows = {**named, **given}
        sent = {
            "organization": world.acme.pk,
            "service": "crm",
            **rows,
            "name_4": "password",
            "value_4": "hunter22",
        }
        assert admin.post(add("other"), sent).status_code == 302
        assert kept("crm") == {**fields, "password": "hunter22"}

    def test_a_second_row_for_a_service_is_refused(
        self, world: World, admin: Client, github: Credential
    ) -> None:
        again = {"organization": world.acme.pk, "value_token": "another-token"}
        assert "already" in str(faults(admin.post(add("github"), again))["__all__"])
        assert kept("github") == {"token": TOKEN}

    def test_credentials_of_another_organization_are_not_treated_as_duplicates(
        self, world: World, admin: Client
    ) -> None:
        Credential.objects.create(organization=world.globex, service="github", fields="{}")
        assert (
            admin.post(
                add("github"), {"organization": world.acme.pk, "value_token": TOKEN}
            ).status_code
            == 302
        )

    def test_a_superuser_sees_only_the_fields_required_by_sources_of_the_same_organization(
        self, world: World
    ) -> None:
        for owner, kind in ((world.acme, "bearer"), (world.globex, "basic")):
            Source.objects.create(
                organization=owner, kind="openapi", name="crm", authentication=kind
            )
        row = Credential.objects.create(organization=world.acme, service="crm", fields="{}")
        world.users["root"] = User.objects.create_superuser("root")
        form = world.client("root").get(address(row, "change")).context["adminform"].form
        assert [name for name in form.fields if name.startswith("value_")] == ["value_token"]

    def test_the_number_of_credentials_is_limited_to_50_services(
        self, world: World, admin: Client
    ) -> None:
        rows = [
            Credential(organization=world.acme, service=f"s{number}", fields="{}")
            for number in range(50)
        ]
        Credential.objects.bulk_create(rows)
        told = str(
            faults(admin.post(add("github"), {"organization": world.acme.pk, "value_token": TOKEN}))
        )
        assert "50 services" in told

    def test_credentials_cannot_be_added_to_another_organization(
        self, world: World, admin: Client
    ) -> None:
        sent = {"organization": world.globex.pk, "value_token": TOKEN}
        assert "organization" in faults(admin.post(add("github"), sent))
        for username in ("viewer", "operator", "approver"):
            assert world.client(username).post(add("github"), sent).status_code == 302
        assert not Credential.objects.exists()


class TestChangingCredentials:
    def test_an_empty_field_keeps_its_value(self, world: World, admin: Client) -> None:
        Credential.objects.create(
            organization=world.acme,
            service="slack",
            fields=json.dumps({"token": TOKEN, "signing_secret": SECRET}),
        )
        path = address(Credential.objects.get(), "change")
        assert (
            admin.post(path, filled_form(admin, path, value_token="fresh-token")).status_code == 302
        )
        assert kept("slack") == {"token": "fresh-token", "signing_secret": SECRET}
        assert version(world) == 1
        entry = AuditEntry.objects.get(organization=world.acme)
        assert (entry.action, entry.payload["fields"]) == ("credential_changed", {"token": "set"})

    def test_saving_unchanged_values_does_not_change_anything(
        self, world: World, admin: Client, github: Credential
    ) -> None:
        path = address(github, "change")
        assert admin.post(path, filled_form(admin, path)).status_code == 302
        assert (kept("github"), version(world)) == ({"token": TOKEN}, 0)
        assert not AuditEntry.objects.exists()

    def test_a_field_can_be_removed_unless_it_is_the_last_field(
        self, world: World, admin: Client
    ) -> None:
        fields = json.dumps({"user": "somebody", "key": TOKEN})
        path = address(
            Credential.objects.create(organization=world.acme, service="crm", fields=fields),
            "change",
        )
        assert admin.post(
            path, filled_form(admin, path, forget_user="on", name_1="zone", value_1="north-1")
        ).status_code
        assert kept("crm") == {"key": TOKEN, "zone": "north-1"}
        left = filled_form(admin, path, forget_key="on", forget_zone="on")
        assert "Delete" in str(faults(admin.post(path, left))["__all__"])
        both = filled_form(admin, path, forget_key="on", value_key=TOKEN)
        assert {"forget_key", "value_key"} == set(faults(admin.post(path, both)))

    def test_deleting_credentials_needs_confirmation_and_is_audited(
        self, world: World, admin: Client, github: Credential
    ) -> None:
        path = address(github, "delete")
        assert "Are you sure" in admin.get(path).content.decode()
        assert Credential.objects.exists()
        assert admin.post(path, {"post": "yes"}).status_code == 302
        assert not Credential.objects.exists()
        assert version(world) == 1
        entry = AuditEntry.objects.get()
        assert (entry.action, entry.payload["fields"]) == (
            "credential_deleted",
            {"token": "removed"},
        )

    def test_unreadable_credentials_can_be_replaced(
        self, admin: Client, github: Credential, settings: Settings
    ) -> None:
        settings.GADGET_ENCRYPTION_KEYS = ["bmV3LWtleS1uZXcta2V5LW5ldy1rZXktbmV3LWtleSE="]
        assert "Cannot be read" in admin.get(address(github, "list")).content.decode()
        path = address(github, "change")
        assert "Cannot be read" in admin.get(path).content.decode()
        assert (
            admin.post(path, filled_form(admin, path, value_token="fresh-token")).status_code == 302
        )
        assert kept("github") == {"token": "fresh-token"}

    def test_credentials_of_another_organization_are_not_found(
        self, world: World, github: Credential
    ) -> None:
        outsider = world.client("outsider")
        assert TOKEN not in outsider.get(address(github, "list")).content.decode()
        for page in ("change", "delete", "history"):
            assert outsider.get(address(github, page)).status_code in (302, 404)
        assert outsider.post(
            address(github, "change"), {"value_token": "theirs-now"}
        ).status_code in (302, 404)
        assert kept("github") == {"token": TOKEN}


class TestSecretValues:
    def test_are_absent_from_pages_messages_and_history(
        self, world: World, admin: Client, github: Credential
    ) -> None:
        path = address(github, "change")
        seen = [
            admin.post(
                path, filled_form(admin, path, value_token=SECRET), follow=True
            ).content.decode()
        ]
        seen += [
            admin.get(address(github, page)).content.decode()
            for page in ("list", "change", "history", "delete")
        ]
        seen += [admin.get(where).content.decode() for where in ("/admin/", "/audit/")]
        seen.append(export(admin, ""))
        seen += [str(list(LogEntry.objects.values())), str(list(AuditEntry.objects.values()))]
        seen += [str(session.get_decoded()) for session in Session.objects.all()]
        assert LogEntry.objects.exists()
        for text in seen:
            assert TOKEN not in text
            assert "signing-marker" not in text

    @feature(
        "The toolbox and its settings",
        "Credentials are entered in the admin and never shown again, not even on an error page",
        "agents/admin/credentials.py",
    )
    def test_are_absent_from_the_debug_error_page(
        self,
        world: World,
        settings: Settings,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """The error page must hide a value that is in memory when an error occurs."""
        settings.DEBUG = True
        caplog.set_level(logging.DEBUG)
        admin = world.client("admin")
        admin.raise_request_exception = False

        def broken(*_: object) -> None:
            raise RuntimeError("the disk is full")

        def tell_tale(*_: object) -> None:
            raise RuntimeError(f"a disk full of {TOKEN}")

        sent = {"organization": world.acme.pk, "value_token": TOKEN}
        monkeypatch.setattr("agents.admin.credentials.bump_credentials_version", broken)
        for headers in ({}, {"accept": "text/plain"}):
            response = admin.post(add("github"), sent, headers=headers)
            assert response.status_code == 500
            body = response.content.decode()
            assert "the disk is full" in body
            assert "save_model" in body
            assert TOKEN not in body
            assert TOKEN not in caplog.text
        monkeypatch.setattr("agents.admin.credentials.bump_credentials_version", tell_tale)
        assert "a disk full of [hidden]" in admin.post(add("github"), sent).content.decode()
        too_many = {**sent, **{f"x{number}": "y" for number in range(2_000)}}
        response = admin.post(add("github"), too_many)
        assert response.status_code == 400
        assert TOKEN not in response.content.decode()
        assert not Credential.objects.exists()
        assert settings.SECRET_KEY not in response.content.decode()
        assert settings.GADGET_ENCRYPTION_KEYS[0] not in response.content.decode()
