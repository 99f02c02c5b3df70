"""On the page of a source's tools, an admin says which params name something and which do not."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agents.accounts.models import AuditEntry
from agents.employees.toolboxes import load_toolbox
from tests.admin.rows import make_admin_world
from tests.admin.source_pages import form_on, text_of, tools_page
from tests.features import feature
from tests.world import World
from tools.connections.changes import DescribedTool, SourceDescription, save_description
from tools.connections.models import Source, SourceTool
from tools.contract import Level
from tools.contract.param_naming import ParamNaming
from tools.contract.param_words import NamedThing
from tools.sources.openapi import ApiOperation

pytestmark = pytest.mark.django_db

TOOL = "pets.addPet"


@pytest.fixture
def world() -> World:
    return make_admin_world()


@pytest.fixture
def pets(world: World) -> Source:
    """A connected source with one enabled tool."""
    source = Source.objects.create(
        organization=world.acme, kind="openapi", name="pets", base_url="https://pets.example"
    )
    read(source, "Add a pet")
    SourceTool.objects.update(is_chosen=True)
    return source


def read(source: Source, summary: str) -> None:
    """Save a description with one operation, whose definition is accepted."""
    properties = {"ref": {"type": "string"}, "montant": {"type": "number"}}
    operation = ApiOperation(
        *("POST /pets", "POST", "/pets", "addPet", "addPet", summary, summary),
        level=Level.WRITE,
        level_reason="",
        params={"type": "object", "properties": properties},
    )
    described = DescribedTool(
        operation.key, TOOL, summary, (), operation.to_json(), operation.hash, Level.WRITE
    )
    found = SourceDescription("Pets", "1", (described,), base_url=source.base_url)
    save_description(Source.objects.get(pk=source.pk), found)
    SourceTool.objects.filter(source=source).update(accepted_hash=operation.hash)


def row_of(source: Source) -> SourceTool:
    return SourceTool.objects.get(source=source)


def say(admin: Client, source: Source, **params: list[str]) -> Any:
    """Send the form with these params, and confirm what the page asks."""
    path, row = tools_page(source), row_of(source)
    sent = {
        **form_on(admin.get(path)),
        **{f"{kind}-{row.pk}": chosen for kind, chosen in params.items()},
    }
    page = admin.post(path, sent)
    if page.status_code == 302 or not page.context["consequences"]:
        return page
    return admin.post(path, {**sent, "confirmed": list(page.context["consequences"])})


@feature(
    "Connected sources",
    "An admin says once per tool which params name something, and which name nothing",
    "agents/admin/source_choices.py",
)
def test_an_admins_statement_about_a_param_is_saved_shown_and_audited(
    admin: Client, pets: Source
) -> None:
    assert "montant: names an amount" in text_of(admin.get(tools_page(pets)))
    assert say(admin, pets, plain=["ref"], named=["montant"]).status_code == 302
    row = row_of(pets)
    assert (row.plain_params, row.named_params) == (["ref"], ["montant"])
    entry = AuditEntry.objects.filter(action="source_changed").get()
    after = entry.payload["fields"]["tools"][TOOL]["after"]
    assert (after["names nothing"], after["names something"]) == (["ref"], ["montant"])
    sent = form_on(admin.get(tools_page(pets)))
    assert (sent[f"plain-{row.pk}"], sent[f"named-{row.pk}"]) == (["ref"], ["montant"])
    assert admin.post(tools_page(pets), sent).status_code == 302
    assert row_of(pets).plain_params == ["ref"]
    assert AuditEntry.objects.filter(action="source_changed").count() == 1


def test_saying_that_a_param_names_nothing_needs_confirmation(admin: Client, pets: Source) -> None:
    row = row_of(pets)
    sent = {**form_on(admin.get(tools_page(pets))), f"plain-{row.pk}": ["ref"]}
    page = admin.post(tools_page(pets), sent)
    (sentence,) = page.context["consequences"].values()
    assert sentence.endswith("can leave these parameters free: pets.addPet ref.")
    assert row_of(pets).plain_params == []
    sent = {**form_on(admin.get(tools_page(pets))), f"named-{row.pk}": ["ref"]}
    assert admin.post(tools_page(pets), sent).status_code == 302


def test_contradictory_statements_about_a_param_are_refused(admin: Client, pets: Source) -> None:
    page = say(admin, pets, plain=["ref"], named=["ref"])
    assert "ref cannot name both something and nothing" in text_of(page)
    assert row_of(pets).plain_params == []


def test_two_admins_do_not_overwrite_each_other(admin: Client, pets: Source) -> None:
    row = row_of(pets)
    earlier = {**form_on(admin.get(tools_page(pets))), f"named-{row.pk}": ["montant"]}
    say(admin, pets, plain=["ref"])
    page = admin.post(tools_page(pets), earlier)
    assert "since you opened this page: pets.addPet" in text_of(page)
    assert row_of(pets).named_params == []


def test_people_who_cannot_change_sources_cannot_state_what_a_param_names(
    world: World, pets: Source
) -> None:
    row = row_of(pets)
    for name in ("operator", "approver"):
        client = world.client(name)
        response = client.post(tools_page(pets), {"shown": [row.pk], f"plain-{row.pk}": ["ref"]})
        assert response.status_code in {302, 403, 404}, name
    assert row_of(pets).plain_params == []


def test_a_param_freed_by_an_admin_is_not_free_under_a_changed_definition(
    admin: Client, pets: Source
) -> None:
    say(admin, pets, plain=["ref"], named=["montant"])
    read(pets, "Add a pet")
    assert row_of(pets).plain_params == ["ref"], "the definition is the same"
    read(pets, "Add a pet and pay for it")
    assert (row_of(pets).plain_params, row_of(pets).named_params) == ([], ["montant"])


def test_a_param_is_judged_by_the_admins_statement_about_it(admin: Client, pets: Source) -> None:
    assert find_ref(pets) is NamedThing.RECIPIENT
    say(admin, pets, plain=["ref"])
    assert find_ref(pets) is NamedThing.NOTHING
    say(admin, pets, plain=[], named=["ref"])
    assert find_ref(pets) is NamedThing.DESTINATION


def find_ref(source: Source) -> NamedThing:
    tool = load_toolbox(source.organization_id).get_tool(TOOL)
    assert tool is not None
    return ParamNaming.of(tool).find("ref", ["eve@evil.example"])
