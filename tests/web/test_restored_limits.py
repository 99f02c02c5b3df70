"""The page of restored limits: each line shows its values, and only ticked lines are confirmed."""

from __future__ import annotations

import re

import pytest

from agents.accounts.models import Organization
from agents.employees.models import Employee
from agents.restores.lines import read_newer_limits, write_lines
from agents.restores.models import RestoredLimit
from gadget_site.backup import restored
from tests.hostile import HOSTILE
from tests.hostile.pages import Reading, strange, tells
from tests.world import World, make_world

pytestmark = pytest.mark.django_db
PAGE = "/stop/restored/"


@pytest.fixture
def world() -> World:
    """Build an organization after a restore, in which no limit has been confirmed yet."""
    made = make_world()
    Employee.objects.filter(pk=made.employee.pk).update(max_passes=3)
    newer = read_newer_limits()
    Employee.objects.filter(pk=made.employee.pk).update(max_passes=9, month_tokens=500)
    restored.settle()
    write_lines(newer)
    return made


def line_of(world: World) -> RestoredLimit:
    return RestoredLimit.objects.get(kind="employee", row_id=world.employee.pk)


def test_differences_are_listed_first_with_both_values_and_the_stricter_value_is_preselected(
    world: World,
) -> None:
    page = world.client("admin").get(PAGE).content.decode()
    first, *_ = page.split("I have checked this line")
    assert world.employee.name in first
    assert "9<br><b>before the restore: 3</b>" in first
    assert re.search(r'value="stricter"\s+checked', first)
    assert page.count("Changed since the backup") == 1


def test_tools_are_shown_with_their_levels_and_limits(world: World) -> None:
    limits = [{"param": "limit", "rule": "maximum", "value": 100, "otherwise": "ask"}]
    grant = {"level": "write", "conditions": limits, "delegates": []}
    tools = {
        "data.searchRecords": grant,
        "utility.calculate": {"level": "", "conditions": [], "delegates": []},
        "utility.now": {"level": "", "version": "1.2", "conditions": [], "delegates": []},
    }
    line = line_of(world)
    RestoredLimit.objects.filter(pk=line.pk).update(
        restored={**(line.restored or {}), "tools": tools}
    )
    page = world.client("admin").get(PAGE).content.decode()
    assert (
        "data.searchRecords: level write; limit must be at most 100; otherwise a person decides."
        in page
    )
    assert re.search(r"utility.calculate\s*(<br>)?\s*utility.now: version 1.2<", page)


def test_unreadable_conditions_are_shown_as_stored(world: World) -> None:
    line = line_of(world)
    broken = {"a.b": {"level": "", "conditions": [{"rule": "nonsense"}], "delegates": []}}
    RestoredLimit.objects.filter(pk=line.pk).update(
        restored={**(line.restored or {}), "tools": broken}
    )
    assert "rule: nonsense" in world.client("admin").get(PAGE).content.decode()


def test_only_ticked_lines_are_confirmed_with_their_outcome(world: World) -> None:
    line, count = line_of(world), RestoredLimit.objects.filter(organization=world.acme).count()
    world.client("admin").post(PAGE, {f"outcome-{line.pk}": "stricter"})
    assert RestoredLimit.objects.filter(organization=world.acme).count() == count
    response = world.client("admin").post(
        PAGE, {"line": line.pk, f"outcome-{line.pk}": "stricter"}, follow=True
    )
    assert "1 line confirmed." in response.content.decode()
    assert RestoredLimit.objects.filter(organization=world.acme).count() == count - 1
    employee = Employee.objects.get(pk=world.employee.pk)
    assert (employee.max_passes, employee.month_tokens) == (3, 500)


@pytest.mark.parametrize("outcome", ["stricter", "newer"])
@pytest.mark.parametrize(("since", "kept"), [(1, 1), (50, 3), (9, 3)])
def test_confirming_a_line_does_not_loosen_a_limit_that_was_changed_after_the_restore(
    world: World, outcome: str, since: int, kept: int
) -> None:
    line = line_of(world)
    Employee.objects.filter(pk=world.employee.pk).update(max_passes=since)
    world.client("admin").post(PAGE, {"line": line.pk, f"outcome-{line.pk}": outcome})
    assert Employee.objects.get(pk=world.employee.pk).max_passes == kept


def test_hostile_names_and_values_are_escaped(world: World) -> None:
    admin, line = world.client("admin"), line_of(world)
    shapes = Reading(admin.get(PAGE).content.decode()).shapes
    for text in HOSTILE:
        restored = dict.fromkeys(line.restored or {}, text)
        RestoredLimit.objects.filter(pk=line.pk).update(
            name=text[:200], restored=restored, newer=restored
        )
        reading = Reading(admin.get(PAGE).content.decode())
        assert not [*strange(reading, shapes), *reading.faults], text
        assert tells(reading.text, text[:200])


@pytest.mark.parametrize("outcome", ["", "weaker", "newer\0"])
def test_an_invalid_decision_about_a_line_is_refused(world: World, outcome: str) -> None:
    line = line_of(world)
    response = world.client("admin").post(PAGE, {"line": line.pk, f"outcome-{line.pk}": outcome})
    assert response.status_code == 422
    assert line_of(world) == line


def test_lines_of_another_organization_cannot_be_confirmed(world: World) -> None:
    line = line_of(world)
    world.client("outsider").post(PAGE, {"line": line.pk, f"outcome-{line.pk}": "restored"})
    assert line_of(world) == line


def test_the_stop_page_links_to_the_lines_and_resumes_only_once_all_are_confirmed(
    world: World,
) -> None:
    admin = world.client("admin")
    page = admin.get("/stop/").content.decode()
    assert f'href="{PAGE}"' in page
    assert "Resume everything" not in page
    response = admin.post("/stop/", {"what": "everything", "act": "release"}, follow=True)
    assert "Confirm the restored limits first" in response.content.decode()
    assert Organization.objects.get(pk=world.acme.pk).stopped_at is not None
    lines = RestoredLimit.objects.filter(organization=world.acme)
    admin.post(
        PAGE,
        {"line": [line.pk for line in lines]}
        | {f"outcome-{line.pk}": "restored" for line in lines},
    )
    assert "Nothing to confirm" in admin.get(PAGE).content.decode()
    admin.post("/stop/", {"what": "everything", "act": "release"})
    assert Organization.objects.get(pk=world.acme.pk).stopped_at is None
