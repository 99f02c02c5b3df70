"""Key rotation: all values are encrypted with the first key, undecryptable values are reported, and
the command can be repeated."""

from __future__ import annotations

import io
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from agents.accounts.models import Credential, Organization
from agents.employees.models import ModelProvider, ProviderKind
from agents.platform import key_rotation
from agents.platform.encrypted_fields import UndecryptableText, reencrypt
from gadget_site.management.installation_checks import check_encryption, check_providers
from tests.features import feature

pytestmark = pytest.mark.django_db

OLD, NEW = (Fernet.generate_key().decode() for _ in range(2))
VALUE = '{"token": "marker-of-acme"}'


@pytest.fixture
def acme(settings: Settings) -> Organization:
    """An organization with two encrypted values under the old key, and a provider without one."""
    settings.GADGET_ENCRYPTION_KEYS = [OLD]
    acme = Organization.objects.create(name="Acme", slug="acme")
    Credential.objects.create(organization=acme, service="github", fields=VALUE)
    provider(acme, "Real", api_key="sk-marker-of-acme")
    provider(acme, "None")
    return acme


def provider(acme: Organization, name: str, **more: str) -> ModelProvider:
    return ModelProvider.objects.create(
        organization=acme, name=name, kind=ProviderKind.SCRIPTED, **more
    )


def rotated() -> str:
    output = io.StringIO()
    call_command("rotate_keys", stdout=output)
    return output.getvalue()


def stored() -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT fields FROM accounts_credential UNION ALL SELECT api_key FROM employees_modelprovider"
        )
        return dict.fromkeys(row[0] for row in cursor.fetchall() if row[0])


@feature(
    "The toolbox and its settings",
    "Encryption keys are rotated while Gadget runs",
    "agents/platform/key_rotation.py",
)
def test_everything_is_encrypted_with_the_first_key_and_the_old_key_is_not_needed(
    acme: Organization, settings: Settings
) -> None:
    before = stored()
    settings.GADGET_ENCRYPTION_KEYS = [NEW, OLD]
    assert "2 values encrypted with the first key; 0 already were." in rotated()
    assert before.keys().isdisjoint(stored())
    once = stored()
    assert "0 values encrypted with the first key; 2 already were." in rotated()
    assert stored() == once
    settings.GADGET_ENCRYPTION_KEYS = [NEW]
    assert Credential.objects.get().fields == VALUE
    assert ModelProvider.objects.get(name="Real").api_key == "sk-marker-of-acme"


def test_undecryptable_values_are_reported_and_stay_unchanged(
    acme: Organization, settings: Settings
) -> None:
    credential = Credential.objects.get()
    settings.GADGET_ENCRYPTION_KEYS = [NEW]
    provider(acme, "Fresh", api_key="sk-fresh")
    before, output = stored(), io.StringIO()
    with pytest.raises(CommandError, match="2 values could not be decrypted"):
        call_command("rotate_keys", stdout=output)
    assert f"no key can decrypt the fields of credential {credential.pk}" in output.getvalue()
    assert "the api key of model provider" in output.getvalue()
    assert "marker" not in output.getvalue()
    assert stored() == before


def test_many_rows_are_rotated_in_batches(
    acme: Organization, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_rotation, "BATCH", 3)
    Credential.objects.bulk_create(
        Credential(organization=acme, service=f"service-{number}", fields=VALUE)
        for number in range(10)
    )
    settings.GADGET_ENCRYPTION_KEYS = [NEW, OLD]
    assert key_rotation.rotate_keys().renewed == 12
    settings.GADGET_ENCRYPTION_KEYS = [NEW]
    assert {row.fields for row in Credential.objects.all()} == {VALUE}


def test_a_concurrently_changed_value_is_not_overwritten(
    acme: Organization, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.GADGET_ENCRYPTION_KEYS = [NEW, OLD]

    def changed_meanwhile(sealed: str) -> str | None:
        Credential.objects.update(fields='{"token": "theirs"}')
        return reencrypt(sealed)

    monkeypatch.setattr("agents.platform.key_rotation.reencrypt", changed_meanwhile)
    assert key_rotation.rotate_keys().renewed == 1, "the provider's key alone"
    assert Credential.objects.get().fields == '{"token": "theirs"}'


def test_an_undecryptable_value_survives_saving_its_row(
    acme: Organization, settings: Settings
) -> None:
    settings.GADGET_ENCRYPTION_KEYS = [NEW]
    row = ModelProvider.objects.get(name="Real")
    assert isinstance(row.api_key, UndecryptableText)
    assert not row.api_key
    row.name = "Renamed"
    row.save()
    settings.GADGET_ENCRYPTION_KEYS = [NEW, OLD]
    assert ModelProvider.objects.get(name="Renamed").api_key == "sk-marker-of-acme"


class TestTheDoctor:
    def told(self) -> list[str]:
        return [f"{finding.text} -> {finding.fix}" for finding in check_encryption()]

    def test_reports_undecryptable_values_and_continues(
        self, acme: Organization, settings: Settings
    ) -> None:
        ModelProvider.objects.update(kind=ProviderKind.OPENAI, base_url="http://127.0.0.1:9/v1")
        settings.GADGET_ENCRYPTION_KEYS = [NEW]
        (line,) = self.told()
        assert line.startswith("no key can decrypt the ")
        assert f"the fields of credential {Credential.objects.get().pk}" in line
        assert "/admin/" in line
        providers = {finding.text for finding in check_providers()}
        assert "acme/Real: bad_key: the key of the provider 'Real' cannot be read" in providers

    def test_reports_values_encrypted_with_an_old_key(
        self, acme: Organization, settings: Settings
    ) -> None:
        settings.GADGET_ENCRYPTION_KEYS = [NEW, OLD]
        (line,) = self.told()
        assert line.startswith("encrypted with an older key: the")
        assert line.endswith("-> python manage.py rotate_keys")
        rotated()
        assert self.told() == [
            "everything is encrypted with the first of GADGET_ENCRYPTION_KEYS -> "
        ]
