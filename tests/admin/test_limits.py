"""The limits on an employee's tools, as set in the admin: they are parsed, validated and stored,
and loosened only after a confirmation."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agents.accounts.models import AuditEntry
from agents.admin.employees import MAX_TOOLS
from agents.employees.models import Grant
from agents.employees.toolboxes import get_installed_toolbox
from tests.admin.rows import address, confirmed, faults, fill_in, filled_form
from tests.features import feature
from tests.tools.toolbox.sample_tools import Echo
from tests.world import DELETE, SEARCH, UPDATE, World

pytestmark = pytest.mark.django_db

DETAIL = "data.getRecordDetail"
Row = dict[str, str]


def compare(tool: str, param: str, comparison: str, value: str, otherwise: str = "ask") -> Row:
    return {
        "sentence": "comparison",
        "tool": tool,
        "param": param,
        "comparison": comparison,
        "value": value,
        "otherwise": otherwise,
    }


def count(tool: str, most: str, period: str = "hour", otherwise: str = "ask") -> Row:
    return {
        "sentence": "call_count",
        "tool": tool,
        "most": most,
        "period": period,
        "otherwise": otherwise,
    }


def add_up(tool: str, param: str, most: str, period: str = "day", otherwise: str = "ask") -> Row:
    return {
        "sentence": "sum", "tool": tool, "param": param, "most": most, "period": period, "otherwise": otherwise,
    }  # fmt: skip


def after(tool: str, earlier: str, same: str, param: str, otherwise: str = "ask") -> Row:
    return {
        "sentence": "only_after", "tool": tool, "after": earlier, "same": same, "param": param, "otherwise": otherwise,
    }  # fmt: skip


def origin(tool: str, param: str, otherwise: str = "ask") -> Row:
    return {"sentence": "origin", "tool": tool, "param": param, "otherwise": otherwise}


def level(tool: str, name: str) -> Row:
    return {"sentence": "level", "tool": tool, "level": name}


STATUS = compare(UPDATE, "changes.status", "one_of", "active\npending", "forbid")
LIMIT = compare(SEARCH, "limit", "maximum", "100")
RAISED = level(SEARCH, "write")
ORIGIN = origin(UPDATE, "changes.email", "forbid")
COUNT = count(SEARCH, "20")
SUM = add_up(SEARCH, "limit", "500", otherwise="forbid")
AFTER = after(UPDATE, DETAIL, "record_id", "record_id")


def saved(world: World, admin: Client, *rows: Row, **more: Any) -> Any:
    path = address(world.employee, "change")
    form = {
        name: value
        for name, value in filled_form(admin, path).items()
        if not name.startswith("limits-")
    }
    return admin.post(path, form | fill_in(list(rows)) | more)


@feature(
    "The gate",
    "Limits are edited as sentences in the employee's form",
    "agents/admin/tool_limits.py",
)
def test_sentences_are_stored_as_limits_and_shown_as_sentences_again(
    world: World, admin: Client
) -> None:
    rows = [RAISED, LIMIT, COUNT, SUM, STATUS, ORIGIN, AFTER]
    response = saved(world, admin, *rows)
    assert response.status_code == 302, faults(response)
    search = Grant.objects.get(employee=world.employee, tool=SEARCH)
    assert search.level == "write"
    assert search.conditions == [
        {"param": "limit", "rule": "maximum", "value": 100, "otherwise": "ask"},
        {
            "param": "",
            "rule": "call_count",
            "value": {"most": 20, "period": "hour"},
            "otherwise": "ask",
        },
        {
            "param": "limit",
            "rule": "sum",
            "value": {"most": 500, "period": "day"},
            "otherwise": "forbid",
        },
    ]
    update = Grant.objects.get(employee=world.employee, tool=UPDATE)
    assert update.conditions == [
        {
            "param": "changes.status",
            "rule": "one_of",
            "value": ["active", "pending"],
            "otherwise": "forbid",
        },
        {
            "param": "changes.email",
            "rule": "not_from_outside",
            "value": True,
            "otherwise": "forbid",
        },
        {
            "param": "record_id",
            "rule": "only_after",
            "value": {"tool": DETAIL, "param": "record_id"},
            "otherwise": "ask",
        },
    ]
    form = admin.get(address(world.employee, "change")).context["adminform"].form
    assert form.initial["limits"] == rows
    entry = AuditEntry.objects.get(action="employee_changed", payload__fields__has_key="limits")
    assert "At most 20 calls per hour" in str(entry.payload)


def test_every_sentence_is_on_the_page_without_javascript(world: World, admin: Client) -> None:
    saved(world, admin, COUNT, LIMIT)
    html = " ".join(admin.get(address(world.employee, "change")).content.decode().split())
    assert 'name="limits-0-most" value="20"' in html
    assert f'<option value="{SEARCH}" selected>' in html
    assert "calls of" in html
    assert "must not come from outside" in html
    assert html.count('name="limits-0-remove"') == 1
    kinds = ["call_count", "sum", "only_after", "comparison", "origin", "level"]
    for number, kind in enumerate(kinds, start=2):
        assert f'name="limits-{number}-sentence" value="{kind}"' in html


def test_an_empty_sentence_does_not_set_a_limit_and_a_removed_sentence_deletes_its_limit(
    world: World, admin: Client
) -> None:
    saved(world, admin, STATUS, LIMIT)
    path = address(world.employee, "change")
    empty = {
        "sentence": "sum",
        "tool": "",
        "param": " ",
        "most": "",
        "period": "hour",
        "otherwise": "ask",
    }
    assert saved(world, admin, LIMIT, STATUS, empty).status_code == 302
    sent = filled_form(admin, path) | fill_in([LIMIT | {"remove": "on"}, STATUS])
    assert admin.post(path, confirmed(admin, path, sent)).status_code == 302
    assert Grant.objects.get(employee=world.employee, tool=SEARCH).conditions == []
    assert Grant.objects.get(employee=world.employee, tool=UPDATE).conditions != []


@pytest.mark.parametrize(
    ("param", "comparison", "value", "stored"),
    [
        ("text", "equals", "5", "5"),
        ("text", "equals", '"a quoted one"', "a quoted one"),
        ("text", "one_of", "a\n\n b \ntrue", ["a", "b", "true"]),
        ("limit", "equals", "5", 5),
        ("limit", "minimum", "2.5", 2.5),
        ("limit", "maximum", "1,000", 1000),
        ("text", "max_length", "9", 9),
        ("text", "pattern", "a.*", "a.*"),
        ("text", "equals", '""', ""),
    ],
)
def test_values_are_parsed_according_to_the_type_of_their_parameter(
    world: World, admin: Client, param: str, comparison: str, value: str, stored: Any
) -> None:
    response = saved(world, admin, compare(SEARCH, param, comparison, value))
    assert response.status_code == 302, faults(response)
    (condition,) = Grant.objects.get(employee=world.employee, tool=SEARCH).conditions
    assert condition["value"] == stored
    again = admin.post(
        path := address(world.employee, "change"), filled_form(admin, path, job_title="Steward")
    )
    assert again.status_code == 302, faults(again)
    assert Grant.objects.get(employee=world.employee, tool=SEARCH).conditions == [condition]


def test_the_employee_page_shows_limits_as_sentences(world: World, admin: Client) -> None:
    saved(world, admin, STATUS, ORIGIN, COUNT, SUM, AFTER)
    html = admin.get(f"/employees/{world.employee.pk}/").content.decode()
    for sentence in (
        "changes.status must be one of [&quot;active&quot;,&quot;pending&quot;]; otherwise it is refused.",
        "changes.email must not come from outside; otherwise it is refused.",
        "At most 20 calls per hour; otherwise a person decides.",
        "The sum of limit must be at most 500 per day; otherwise it is refused.",
        f"Only after {DETAIL} with the same record_id in this run; otherwise a person decides.",
    ):
        assert sentence in html


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (
            compare("data.nothing", "limit", "maximum", "1"),
            "there is no tool &#x27;data.nothing&#x27;",
        ),
        (
            compare(SEARCH, "color", "equals", "1"),
            "has no parameter &#x27;color&#x27;, only category, limit, ",
        ),
        (
            compare(UPDATE, "changes.color", "equals", "1"),
            f"{UPDATE} changes has no parameter &#x27;color&#x27;, only",
        ),
        (compare(SEARCH, "limit", "below", "1"), "&#x27;below&#x27; is not a comparison"),
        (compare(SEARCH, "limit", "maximum", ""), "&#x27;&#x27; is not a number"),
        (compare(SEARCH, "limit", "maximum", "many"), "&#x27;many&#x27; is not a number"),
        (compare(SEARCH, "limit", "maximum", "true"), "&#x27;true&#x27; is not a number"),
        (
            compare(SEARCH, "limit", "equals", "many"),
            "&#x27;many&#x27; is not a value of limit, which is integer",
        ),
        (compare(SEARCH, "limit", "equals", "NaN"), "is not a value of limit"),
        (compare(SEARCH, "text", "maximum", "1"), f"text of {SEARCH} is not a number"),
        (compare(SEARCH, "text", "pattern", "("), "is not a valid RE2 regular expression"),
        (compare(SEARCH, "text", "one_of", " "), "give a list with at least one value"),
        (compare(SEARCH, "text", "equals", "a", "allow"), "choose what happens otherwise"),
        (compare("", "text", "equals", "a"), "choose its tool"),
        (count(SEARCH, ""), "fill in “Limit”"),
        (count(SEARCH, "0"), "0 is not a whole number from 1 to 1,000,000"),
        (count(SEARCH, "2.5"), "2.5 is not a whole number"),
        (count(SEARCH, "2", "year"), "&#x27;year&#x27; is not a period"),
        (add_up(SEARCH, "text", "500"), f"text of {SEARCH} is not a number"),
        (
            add_up(SEARCH, "amount", "500"),
            "has no parameter &#x27;amount&#x27;, only category, limit",
        ),
        (add_up(SEARCH, "", "500"), "fill in “Parameter”"),
        (add_up(SEARCH, "limit", "-1"), "-1 is not a number of 0 or more"),
        (
            after(UPDATE, "data.nothing", "record_id", "record_id"),
            "there is no tool &#x27;data.nothing&#x27;",
        ),
        (
            after(UPDATE, DETAIL, "name", "record_id"),
            f"{DETAIL} has no parameter &#x27;name&#x27;, only record_id",
        ),
        (
            after(UPDATE, DETAIL, "record_id", "name"),
            f"{UPDATE} has no parameter &#x27;name&#x27;, only",
        ),
        (after(UPDATE, "", "record_id", "record_id"), "fill in “Earlier tool”"),
        (level(UPDATE, "read"), "which cannot be lowered"),
        (level(UPDATE, "severe"), "is not a level"),
        (level("data.getStats", "write"), "has a limit, but is not ticked"),
    ],
)
def test_an_invalid_sentence_is_refused_with_the_reason(
    world: World, admin: Client, row: Row, why: str
) -> None:
    response = saved(world, admin, row)
    assert "limits" in faults(response)
    assert why in response.content.decode()
    assert not Grant.objects.exclude(conditions=[], level="").exists()


def test_a_refused_form_keeps_the_typed_values(world: World, admin: Client) -> None:
    html = " ".join(
        saved(world, admin, add_up(SEARCH, "color", "500", "minute")).content.decode().split()
    )
    for part in ('value="color"', 'value="500"', '<option value="minute" selected>'):
        assert part in html


def test_loosening_a_limit_needs_confirmation_and_tightening_does_not(
    world: World, admin: Client
) -> None:
    saved(world, admin, LIMIT)
    assert saved(world, admin, LIMIT, STATUS).status_code == 302
    response = saved(world, admin, STATUS)
    assert response.status_code == 200
    told = (
        f"is no longer limited by: {SEARCH}: limit must be at most 100; otherwise a person decides."
    )
    assert told in response.content.decode()
    assert Grant.objects.get(employee=world.employee, tool=SEARCH).conditions != []


def test_removing_a_tool_removes_its_limit_without_confirmation(
    world: World, admin: Client
) -> None:
    saved(world, admin, LIMIT)
    response = saved(world, admin, allowed_tools=[UPDATE, DELETE])
    assert response.status_code == 302, faults(response)


def test_limits_of_an_uninstalled_tool_stay(world: World, admin: Client) -> None:
    kept = {"param": "to", "rule": "equals", "value": "me", "otherwise": "ask"}
    world.employee.grants.create(tool="crm.gone", level="write", conditions=[kept])
    path = address(world.employee, "change")
    response = admin.post(path, filled_form(admin, path, job_title="Steward"))
    assert response.status_code == 302, faults(response)
    gone = Grant.objects.get(employee=world.employee, tool="crm.gone")
    assert (gone.level, gone.conditions) == ("write", [kept])


@feature(
    "The gate",
    "More tools than a request may contain are refused, with the number",
    "agents/admin/employees.py",
)
def test_more_tools_than_a_request_may_contain_are_refused_with_the_count(
    world: World, admin: Client
) -> None:
    toolbox = get_installed_toolbox()
    names = [f"sample.number{number}" for number in range(MAX_TOOLS + 1)]
    for name in names:
        toolbox.register(Echo(name=name))
    try:
        response = saved(world, admin, allowed_tools=names)
        assert (
            f"{MAX_TOOLS + 1} tools are ticked, but a model can be offered at most {MAX_TOOLS}"
            in str(faults(response))
        )
        assert saved(world, admin, allowed_tools=names[:-1]).status_code == 302
    finally:
        for name in names:
            toolbox.unregister(name)
