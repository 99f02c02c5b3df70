"""A provider's key can be entered but never read, and scripts cannot be entered in the admin."""

import html

import pytest
from django.db import connection
from django.test import Client
from pytest_django import Settings

from agents.accounts.models import AuditEntry
from agents.employees.models import Employee, ModelProvider, ProviderKind
from gadget_site.private_hosts import list_named_hosts
from tests.admin.rows import address, faults, filled_form
from tests.model_server import ModelServer
from tests.ollama_server import OllamaServer
from tests.scripts import write_script
from tests.world import World, nobody
from tools.contract import PrivateHosts

pytestmark = pytest.mark.django_db

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def provider(world: World) -> ModelProvider:
    return ModelProvider.objects.create(
        organization=world.acme,
        name="Real",
        kind=ProviderKind.OPENAI,
        base_url="https://one.example/v1",
        api_key=KEY,
    )


def test_a_key_is_encrypted_and_audited_without_its_value(world: World, admin: Client) -> None:
    sent = {
        "organization": world.acme.pk,
        "name": "New",
        "kind": "openai",
        "base_url": "https://one.example/v1",
        "new_key": KEY,
        "timeout_s": 60,
    }
    response = admin.post(address(ModelProvider, "add"), sent)
    assert response.status_code == 302, faults(response)
    made = ModelProvider.objects.get(name="New")
    assert made.api_key == KEY
    with connection.cursor() as cursor:
        cursor.execute("SELECT api_key FROM employees_modelprovider WHERE id = %s", [made.pk])
        assert KEY not in cursor.fetchone()[0]
    entry = AuditEntry.objects.get(organization=world.acme)
    assert entry.payload["fields"]["new_key"] == "set"
    assert KEY not in str(entry.payload)


def test_no_page_shows_the_key(admin: Client, provider: ModelProvider) -> None:
    for page in ("list", "change", "history", "delete"):
        assert KEY not in admin.get(address(provider, page)).content.decode(), page
    path = address(provider, "change")
    refused = admin.post(path, filled_form(admin, path, timeout_s="x", new_key=KEY))
    assert "timeout_s" in faults(refused)
    assert KEY not in refused.content.decode()


def test_an_empty_field_keeps_the_key(admin: Client, provider: ModelProvider) -> None:
    path = address(provider, "change")
    assert admin.post(path, filled_form(admin, path, name="Renamed")).status_code == 302
    provider.refresh_from_db()
    assert (provider.name, provider.api_key) == ("Renamed", KEY)


@pytest.mark.parametrize("key", ["127.0.0.1", "localhost", "123456789", "anything"])
def test_a_common_value_is_refused_as_a_key(
    admin: Client, provider: ModelProvider, key: str
) -> None:
    path = address(provider, "change")
    wrong = faults(admin.post(path, filled_form(admin, path, new_key=key)))
    assert "Leave it empty if the server needs no key." in str(wrong["new_key"])
    provider.refresh_from_db()
    assert provider.api_key == KEY


def test_a_key_can_be_replaced_and_removed(admin: Client, provider: ModelProvider) -> None:
    path = address(provider, "change")
    assert admin.post(path, filled_form(admin, path, new_key="another-key-1")).status_code == 302
    provider.refresh_from_db()
    assert provider.api_key == "another-key-1"
    assert admin.post(path, filled_form(admin, path, forget_key="on")).status_code == 302
    provider.refresh_from_db()
    assert provider.api_key == ""


def test_a_new_address_requires_entering_the_key_again(
    admin: Client, provider: ModelProvider
) -> None:
    path = address(provider, "change")
    moved = filled_form(admin, path, base_url="https://two.example/v1")
    assert "new_key" in faults(admin.post(path, moved))
    provider.refresh_from_db()
    assert provider.base_url == "https://one.example/v1"
    assert admin.post(path, {**moved, "new_key": "for-two"}).status_code == 302
    provider.refresh_from_db()
    assert (provider.base_url, provider.api_key) == ("https://two.example/v1", "for-two")


def test_a_script_cannot_be_entered_in_the_form(world: World, admin: Client) -> None:
    path = address(world.employee.provider, "change")
    assert "script" not in admin.get(path).context["adminform"].form.fields
    script = "scripts:\n  - task: hello\n    answer: Hello.\n"
    sent = filled_form(admin, path, name="Renamed", script=script)
    assert admin.post(path, sent).status_code == 302
    assert list(AuditEntry.objects.get().payload["fields"]) == ["name"]


class TestPrivateAddresses:
    """Providers use the same network rules as tools: only the installation allows private
    addresses."""

    @pytest.fixture(autouse=True)
    def nothing_is_allowed(self, settings: Settings) -> None:
        settings.PRIVATE_PROVIDERS = PrivateHosts()

    @pytest.mark.parametrize(
        "typed",
        [
            *(
                "http://127.0.0.1:6379/",
                "http://localhost/v1",
                "http://10.0.0.5/v1",
                "https://[::1]/v1",
            ),
            *("http://169.254.169.254/latest", "http://[::ffff:127.0.0.1]/", "localhost/v1"),
        ],
    )
    def test_are_refused_for_a_new_provider_even_if_it_is_inactive(
        self, world: World, admin: Client, typed: str
    ) -> None:
        sent = {
            "organization": world.acme.pk,
            "name": "New",
            "kind": "openai",
            "base_url": typed,
            "timeout_s": 60,
        }
        for active in ({"is_active": "on"}, {}):
            refused = admin.post(address(ModelProvider, "add"), {**sent, **active})
            assert "is not allowed" in faults(refused)["base_url"][0]
        assert not ModelProvider.objects.filter(name="New").exists()

    def test_are_refused_as_a_new_address_of_an_inactive_provider(
        self, admin: Client, provider: ModelProvider
    ) -> None:
        ModelProvider.objects.filter(pk=provider.pk).update(is_active=False, api_key="")
        path = address(provider, "change")
        moved = filled_form(admin, path, base_url="http://10.0.0.5/v1")
        assert "is not allowed" in faults(admin.post(path, moved))["base_url"][0]

    def test_are_not_suggested_without_the_setting_that_allows_them(self, admin: Client) -> None:
        html = admin.get(address(ModelProvider, "add")).content.decode()
        assert "need the setting ALLOWED_PRIVATE_HOSTS" in html
        assert "e.g. http://localhost" not in html

    def test_are_not_the_default_for_ollama(self, world: World, admin: Client) -> None:
        sent = {
            "organization": world.acme.pk,
            "name": "New",
            "kind": "ollama",
            "timeout_s": 60,
            "is_active": "on",
        }
        assert "base_url" in faults(admin.post(address(ModelProvider, "add"), sent))

    def test_are_not_contacted_by_the_connection_test(
        self, admin: Client, provider: ModelProvider
    ) -> None:
        with ModelServer() as server:
            ModelProvider.objects.filter(pk=provider.pk).update(base_url=server.url)
            assert "has a private address" in tried(admin, provider)
            assert server.connections == 0

    def test_are_saved_and_contacted_if_the_installation_allows_them(
        self, world: World, admin: Client, settings: Settings
    ) -> None:
        with ModelServer() as server:
            settings.PRIVATE_PROVIDERS = PrivateHosts(tuple(list_named_hosts([server.url])))
            sent = {
                "organization": world.acme.pk,
                "name": "New",
                "kind": "openai",
                "timeout_s": 60,
                "is_active": "on",
            }
            saved = admin.post(address(ModelProvider, "add"), {**sent, "base_url": server.url})
            assert saved.status_code == 302, faults(saved)
            assert "Connection to New works." in tried(admin, ModelProvider.objects.get(name="New"))

    def test_do_not_prevent_switching_off_a_provider(
        self, admin: Client, provider: ModelProvider
    ) -> None:
        ModelProvider.objects.filter(pk=provider.pk).update(base_url="http://10.0.0.5/v1")
        path = address(provider, "change")
        assert "base_url" in faults(admin.post(path, filled_form(admin, path)))
        assert admin.post(path, filled_form(admin, path, is_active=None)).status_code == 302


class TestConnectionTest:
    def test_reports_success_and_failure(self, admin: Client, provider: ModelProvider) -> None:
        with ModelServer() as server:
            ModelProvider.objects.filter(pk=provider.pk).update(base_url=server.url)
            assert "Connection to Real works." in tried(admin, provider)
        assert "Connection to Real failed" in tried(admin, provider)

    def test_connects_only_for_a_post_from_our_own_form(
        self, world: World, provider: ModelProvider
    ) -> None:
        page = f"/admin/employees/modelprovider/{provider.pk}/"
        admin = nobody(needs_csrf=True)
        admin.force_login(world.users["admin"])
        assert f'action="{page}test-connection/"' in admin.get(f"{page}change/").content.decode()
        with ModelServer() as server:
            ModelProvider.objects.filter(pk=provider.pk).update(base_url=server.url)
            assert admin.get(f"{page}test-connection/").status_code == 405
            assert admin.post(f"{page}test-connection/").status_code == 403
            assert server.connections == 0

    def test_explains_errors_in_a_script(self, admin: Client, provider: ModelProvider) -> None:
        ModelProvider.objects.filter(pk=provider.pk).update(kind=ProviderKind.SCRIPTED)
        Employee.objects.create(
            organization=provider.organization,
            name="Uma",
            provider=provider,
            model=write_script("nonsense: ["),
        )
        assert "Connection to Real failed: The script is wrong" in tried(admin, provider)
        Employee.objects.filter(name="Uma").update(model="")
        assert "Connection to Real failed: No script is named" in tried(admin, provider)

    def test_is_denied_to_outsiders(self, world: World, provider: ModelProvider) -> None:
        address = f"/admin/employees/modelprovider/{provider.pk}/test-connection/"
        assert world.client("outsider").post(address).status_code in (302, 403, 404)
        assert not AuditEntry.objects.exists()


def tried(admin: Client, provider: ModelProvider) -> str:
    """Test the connection, and return the page with the message to the admin."""
    response = admin.post(
        f"/admin/employees/modelprovider/{provider.pk}/test-connection/", follow=True
    )
    assert response.status_code == 200
    return html.unescape(response.content.decode())


def test_the_connection_test_tries_ollama_with_the_models_of_active_employees(
    world: World, admin: Client
) -> None:
    with OllamaServer() as ollama:
        provider = ModelProvider.objects.create(
            organization=world.acme, name="Local", kind=ProviderKind.OLLAMA, base_url=ollama.url
        )
        names = {"Uma": ("fake-model", True), "Vic": ("gone", False)}
        for name, (model, is_active) in names.items():
            Employee.objects.create(
                organization=world.acme,
                name=name,
                provider=provider,
                model=model,
                is_active=is_active,
            )
        path = f"/admin/employees/modelprovider/{provider.pk}/test-connection/"
        assert "Connection to Local works." in admin.post(path, follow=True).content.decode()
        Employee.objects.filter(name="Uma").update(model="qwen3:8b")
        told = html.unescape(admin.post(path, follow=True).content.decode())
        assert "Connection to Local failed: Ollama has not pulled" in told
