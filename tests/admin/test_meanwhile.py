"""Two admins who have the same page open never overwrite each other's changes silently."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import Model
from django.test import Client

from tests.admin.rows import address, faults, filled_form
from tests.admin.source_pages import form_on, offered, text_of, tools_page
from tests.features import feature
from tests.world import World
from tools.connections.changes import DescribedTool, SourceDescription, save_description
from tools.connections.models import Source
from tools.contract import Level

pytestmark = pytest.mark.django_db


@pytest.fixture
def source(world: World) -> Source:
    """An API whose stored description has three read operations."""
    values = {
        "kind": "openapi",
        "name": "pets",
        "address": "https://pets.example/api",
        "timeout_s": 30,
    }
    made = Source.objects.create(organization=world.acme, base_url="https://pets.example", **values)
    tools = tuple(
        DescribedTool(f"GET /{name}", f"pets.{name}", "", (), {"name": name}, name * 8, Level.READ)
        for name in ("cats", "dogs", "toys")
    )
    save_description(made, SourceDescription("Pets", "1", tools))
    return made


def rows_of(world: World) -> list[tuple[Model, dict[str, Any], dict[str, Any]]]:
    values = {"kind": "openapi", "name": "stock", "address": "https://stock.example"}
    source = Source.objects.create(
        organization=world.acme, refreshed_at="2026-01-01T00:00Z", **values
    )
    return [
        (source, {"timeout_s": 11}, {"scopes": "all"}),
        (world.employee, {"job_title": "Clerk"}, {"example_tasks": "Look"}),
        (world.acme, {"card_days": 3}, {"name": "Acme & Sons"}),
    ]


@feature(
    "Connected sources",
    "A form of the admin never overwrites a concurrent edit",
    "agents/admin/edit_conflicts.py",
)
@pytest.mark.parametrize("which", [0, 1, 2], ids=["source", "employee", "organization"])
def test_a_conflicting_save_is_refused_but_keeps_its_values_and_is_accepted_when_repeated(
    world: World, admin: Client, which: int
) -> None:
    row, first, second = rows_of(world)[which]
    path, ((field, value),) = address(row, "change"), first.items()
    before = getattr(row, field)
    late = filled_form(admin, path, file=None, **second)
    assert admin.post(path, filled_form(admin, path, file=None, **first)).status_code == 302
    response = admin.post(path, late)
    told = faults(response)
    assert list(told) == [field]
    assert (
        f"Changed by admin since you opened this form. It is now {value}. Save again"
        in told[field][0]
    )
    typed = response.context["adminform"].form
    ((name, wanted),) = second.items()
    assert typed[name].value() == wanted
    row.refresh_from_db()
    assert getattr(row, field) == value
    again = {**late, "shown_fingerprints": typed["shown_fingerprints"].value()}
    assert f'value="{again["shown_fingerprints"]}"' in response.content.decode()
    assert admin.post(path, again).status_code == 302
    row.refresh_from_db()
    assert getattr(row, field) == before


def test_identical_changes_by_both_admins_are_saved(admin: Client, source: Source) -> None:
    path = address(source, "change")
    late = filled_form(admin, path, file=None, timeout_s=11, scopes="all")
    assert admin.post(path, filled_form(admin, path, file=None, timeout_s=11)).status_code == 302
    assert admin.post(path, late).status_code == 302
    source.refresh_from_db()
    assert (source.timeout_s, source.scopes) == (11, "all")


class TestConcurrentToolChanges:
    def test_an_admin_does_not_overwrite_tools_that_only_the_other_admin_changed(
        self, admin: Client, source: Source
    ) -> None:
        path = tools_page(source)
        late = form_on(admin.get(path))
        ids = {row.tool: row.pk for row in source.tools.all()}
        first = {**late, f"chosen-{ids['pets.cats']}": "on", f"chosen-{ids['pets.dogs']}": "on"}
        assert admin.post(path, first).status_code == 302
        assert admin.post(path, {**late, f"chosen-{ids['pets.toys']}": "on"}).status_code == 302
        assert offered(source) == {"pets.cats", "pets.dogs", "pets.toys"}

    @feature(
        "Connected sources",
        "Saving a page of tools writes only the changed ones, and reports concurrent edits",
        "agents/admin/source_choices.py",
    )
    def test_a_conflicting_change_is_reported_and_saved_when_repeated(
        self, admin: Client, source: Source
    ) -> None:
        path = tools_page(source)
        late = form_on(admin.get(path))
        pk = source.tools.get(tool="pets.cats").pk
        assert (
            admin.post(path, {**late, f"chosen-{pk}": "on", f"level-{pk}": "write"}).status_code
            == 302
        )
        page = admin.post(path, {**late, f"chosen-{pk}": "on", f"level-{pk}": "destructive"})
        assert (
            "Changed by admin since you opened this page: pets.cats. Check, then save again."
            in text_of(page)
        )
        assert source.tools.get(pk=pk).level == "write"
        kept = form_on(page)
        assert (kept[f"level-{pk}"], kept[f"chosen-{pk}"]) == ("destructive", "on")
        assert admin.post(path, kept).status_code == 302
        assert source.tools.get(pk=pk).level == "destructive"

    def test_a_form_refused_for_an_error_shows_the_current_values_of_the_other_tools(
        self, admin: Client, source: Source
    ) -> None:
        path = tools_page(source)
        late = form_on(admin.get(path))
        cats, dogs = (source.tools.get(tool=f"pets.{name}").pk for name in ("cats", "dogs"))
        assert admin.post(path, {**late, f"chosen-{cats}": "on"}).status_code == 302
        page = admin.post(path, {**late, f"chosen-{dogs}": "on", f"level-{dogs}": "none-such"})
        assert form_on(page)[f"chosen-{cats}"] == "on"
        assert admin.post(path, {**form_on(page), f"level-{dogs}": ""}).status_code == 302
        assert offered(source) == {"pets.cats", "pets.dogs"}
