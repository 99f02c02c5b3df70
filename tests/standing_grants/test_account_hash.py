"""The account hash of a tool changes whenever the account changes, and differs between
organizations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agents.accounts.models import Organization
from agents.employees.toolboxes import get_installed_toolbox, load_toolbox
from agents.standing_grants.account_hash import hash_account
from tests.tools.connections.api import Api
from tests.tools.connections.connecting import connect_api, offer, set_credentials
from tests.workshop import Workshop, build_workshop
from tools.connections.models import AuthenticationMethod, KeyPlace, Source, SourceKind
from tools.contract import Environment
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)

ADD = "crm.addContact"
KEY = "a-token-of-ours-0001"


def connect(workshop: Workshop, api: Api) -> Source:
    source = connect_api(
        workshop, api, authentication=AuthenticationMethod.BEARER, service="contacts"
    )
    offer(workshop, source, ADD)
    set_credentials(workshop.organization, "contacts", token=KEY)
    return source


@pytest.fixture
def source(workshop: Workshop, api: Api) -> Source:
    return connect(workshop, api)


def hash_of(workshop: Workshop, tool: str = ADD) -> str:
    """Hash the account of this tool in its current state."""
    organization = Organization.objects.get(pk=workshop.organization.pk)
    found = load_toolbox(organization.pk).get_tool(tool)
    assert found is not None
    return hash_account(organization, found)


@pytest.mark.parametrize("tool", ["probe.effect", "data.updateRecord"])
def test_a_built_in_tool_does_not_have_an_account_hash(workshop: Workshop, tool: str) -> None:
    set_credentials(workshop.organization, "contacts", token=KEY)
    assert hash_of(workshop, tool) == ""


class TestAccountOfASource:
    def test_changes_with_the_key_and_changes_back_with_the_first_key(
        self, workshop: Workshop, source: Source
    ) -> None:
        first = hash_of(workshop)
        assert len(first) == 64
        set_credentials(workshop.organization, "contacts", token="another-token-of-ours")
        second = hash_of(workshop)
        set_credentials(workshop.organization, "contacts", token=KEY)
        assert (hash_of(workshop), second != first) == (first, True)

    def test_changes_when_the_key_is_removed(self, workshop: Workshop, source: Source) -> None:
        first = hash_of(workshop)
        Source.objects.filter(pk=source.pk).update(service="nothing")
        unset = hash_of(workshop)
        assert unset != first
        set_credentials(workshop.organization, "nothing", token=KEY)
        assert hash_of(workshop) not in (first, unset)

    @pytest.mark.parametrize(
        "changed",
        [
            {"kind": SourceKind.MCP_HTTP},
            {"address": "https://other.example/openapi.json"},
            {"base_url": "https://other.example"},
            {"command": ["other"]},
            {"environment": {"TOKEN": "token"}},
            {"authentication": AuthenticationMethod.API_KEY},
            {"key_name": "X-Key"},
            {"key_place": KeyPlace.QUERY},
            {"token_url": "https://login.example"},
            {"scopes": "admin"},
            {"service": "others"},
        ],
        ids=lambda changed: next(iter(changed)),
    )
    def test_changes_with_the_address_or_the_authentication(
        self, workshop: Workshop, source: Source, changed: dict[str, Any]
    ) -> None:
        set_credentials(workshop.organization, "others", token=KEY)
        first = hash_of(workshop)
        Source.objects.filter(pk=source.pk).update(**changed)
        assert hash_of(workshop) != first

    @pytest.mark.parametrize(
        "change",
        [
            lambda organization: set_credentials(organization, "others", token="a-token-of-others"),
            lambda organization: Source.objects.update(
                title="Other", timeout_s=5, told="Read again."
            ),
        ],
    )
    def test_does_not_change_with_unrelated_credentials(
        self, workshop: Workshop, source: Source, change: Callable[[Organization], None]
    ) -> None:
        first = hash_of(workshop)
        change(workshop.organization)
        assert hash_of(workshop) == first

    def test_differs_by_organization(self, workshop: Workshop, api: Api, source: Source) -> None:
        first, globex = hash_of(workshop), build_workshop("globex")
        connect(globex, api)
        theirs = {first, hash_of(globex)}
        set_credentials(globex.organization, "contacts", token="another-token-of-theirs")
        theirs.add(hash_of(globex))
        Source.objects.filter(organization=globex.organization).update(
            base_url="https://other.example"
        )
        theirs.add(hash_of(globex))
        assert len(theirs) == 4
        assert hash_of(workshop) == first


class TestAccountOfANetworkTool:
    """Network tools may use any credentials, including those in gadget.yaml."""

    @pytest.fixture
    def installed(self, monkeypatch: pytest.MonkeyPatch, toolbox: Toolbox) -> Callable[..., None]:
        def set_shared(**fields: str) -> None:
            shared = {"github": fields} if fields else {}
            monkeypatch.setattr(toolbox, "environment", Environment(shared))

        assert toolbox is get_installed_toolbox()
        return set_shared

    def test_covers_each_credential_of_the_installation(
        self, workshop: Workshop, installed: Callable[..., None]
    ) -> None:
        found = []
        for fields in (
            {},
            {"token": KEY},
            {"token": "another"},
            {"token": KEY, "user": "us"},
            {"token": KEY},
        ):
            installed(**fields)
            found.append(hash_of(workshop, "probe.visit"))
        assert found[4] == found[1]
        assert len(set(found)) == 4

    def test_covers_each_credential_of_the_organization(self, workshop: Workshop) -> None:
        found = [hash_of(workshop, "probe.visit")]
        for service, token in (("a", KEY), ("a", "another"), ("b", KEY)):
            set_credentials(workshop.organization, service, token=token)
            found.append(hash_of(workshop, "probe.visit"))
        assert len(set(found)) == 4

    def test_differs_by_organization(
        self, workshop: Workshop, installed: Callable[..., None]
    ) -> None:
        installed(token=KEY)
        assert hash_of(workshop, "probe.visit") != hash_of(build_workshop("globex"), "probe.visit")
