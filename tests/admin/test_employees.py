"""The admin page for an employee: tools are granted by exact name, the provider is one of the same
organization, and every change is audited."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from agents.accounts.models import AuditEntry, Membership, Role
from agents.employees.models import Employee, ModelProvider, ProviderKind
from agents.employees.toolboxes import get_installed_toolbox
from tests.admin.rows import address, faults, filled_form
from tests.audit_chain import verify_audit
from tests.scripts import write_script
from tests.tools.toolbox.sample_tools import Echo
from tests.web.pages import read_page
from tests.world import DELETE, SCRIPT, SEARCH, UPDATE, World

pytestmark = [pytest.mark.django_db, pytest.mark.once]


def new_employee(world: World, **changes: Any) -> dict[str, Any]:
    values = {
        "organization": world.acme.pk,
        "name": "Robin",
        "mode": "general",
        "provider": world.employee.provider_id,
        "model": SCRIPT,
        "max_passes": 5,
        "run_minutes": 60,
        "is_active": "on",
        **changes,
    }
    return {name: value for name, value in values.items() if value is not None}


def test_tools_are_listed_by_category_with_their_level(world: World, admin: Client) -> None:
    form = admin.get(address(world.employee, "change")).context["adminform"].form
    groups = dict(form.fields["allowed_tools"].choices)
    assert {"analysis", "content", "data", "report", "utility"} <= set(groups)
    labels = dict(groups["data"])
    assert "READ" in labels[SEARCH]
    assert "WRITE" in labels[UPDATE]
    assert "DESTRUCTIVE" in labels[DELETE]
    assert set(form.initial["allowed_tools"]) == {SEARCH, UPDATE, DELETE}


def test_a_new_employee_has_ten_passes_per_task(admin: Client) -> None:
    form = admin.get(address(Employee, "add")).context["adminform"].form
    assert form["max_passes"].value() == 10


def test_the_form_explains_the_effect_of_the_mode_on_the_ticked_tools(admin: Client) -> None:
    html = admin.get(address(Employee, "add")).content.decode()
    assert "The employee gets only the ticked tools that belong to this mode." in html


def test_modes_named_by_tools_are_offered_and_unknown_modes_are_refused(
    world: World, admin: Client
) -> None:
    path = address(world.employee, "change")
    assert [
        mode for mode, _ in admin.get(path).context["adminform"].form.fields["mode"].choices
    ] == ["general"]
    toolbox = get_installed_toolbox()
    toolbox.register(Echo(name="sample.sell"), modes={"sales"})
    try:
        choices = admin.get(path).context["adminform"].form.fields["mode"].choices
        assert list(choices) == [("general", "General"), ("sales", "Sales")]
        response = admin.post(path, filled_form(admin, path, mode="party"))
        assert response.status_code == 200
        assert "mode" in faults(response)
        assert admin.post(path, filled_form(admin, path, mode="sales")).status_code == 302
    finally:
        toolbox.unregister("sample.sell")
    world.employee.refresh_from_db()
    assert world.employee.mode == "sales"
    assert "sales" in dict(admin.get(path).context["adminform"].form.fields["mode"].choices)
    response = admin.post(path, filled_form(admin, path, mode="sales"))
    assert faults(response)["mode"] == [
        "No installed tool belongs to the mode 'sales'. Choose another mode."
    ]


def test_a_version_can_be_pinned_and_unpinned_in_the_form(world: World, admin: Client) -> None:
    path, pin = address(world.employee, "change"), f"{SEARCH}@1.0"
    allowed = [SEARCH, "data.getStats"]
    assert (
        admin.post(
            path, filled_form(admin, path, allowed_tools=allowed, pinned_versions=pin)
        ).status_code
        == 302
    )
    assert dict(world.employee.grants.values_list("tool", "version")) == {
        SEARCH: "1.0",
        "data.getStats": "",
    }
    assert filled_form(admin, path)["pinned_versions"] == pin
    assert "pinned to version 1.0" in read_page(
        world.client("viewer"), f"/employees/{world.employee.pk}/"
    )
    shown = world.client("viewer").get(f"/api/employees/{world.employee.pk}").json()
    assert shown["pinned_versions"] == {SEARCH: "1.0"}
    for lines, fault in (
        (
            f"{SEARCH}@9.9",
            f"'{SEARCH}@9.9' is not an installed version. Write it like mail.send@1.2.",
        ),
        (SEARCH, f"'{SEARCH}' is not an installed version. Write it like mail.send@1.2."),
        (
            f"{UPDATE}@1.0",
            f"{UPDATE} is pinned, but is not ticked above. Tick it or remove the line.",
        ),
    ):
        response = admin.post(path, filled_form(admin, path, pinned_versions=lines))
        assert faults(response)["pinned_versions"] == [fault]
    assert admin.post(path, filled_form(admin, path, pinned_versions="")).status_code == 302
    assert set(world.employee.grants.values_list("version", flat=True)) == {""}


def test_ticked_tools_are_granted_and_unticked_ones_are_revoked(
    world: World, admin: Client
) -> None:
    path = address(world.employee, "change")
    response = admin.post(path, filled_form(admin, path, allowed_tools=[SEARCH, "data.getStats"]))
    assert response.status_code == 302, faults(response)
    assert set(world.employee.grants.values_list("tool", flat=True)) == {SEARCH, "data.getStats"}


@pytest.mark.parametrize("name", ["data.*", "data", "*", "data.noSuchTool"])
def test_only_exact_names_of_the_catalog_are_granted(
    world: World, admin: Client, name: str
) -> None:
    path = address(world.employee, "change")
    response = admin.post(path, filled_form(admin, path, allowed_tools=[SEARCH, name]))
    assert "allowed_tools" in faults(response)
    assert set(world.employee.grants.values_list("tool", flat=True)) == {SEARCH, UPDATE, DELETE}


def test_a_grant_of_a_removed_tool_stays_until_it_is_unticked(world: World, admin: Client) -> None:
    world.employee.grants.create(tool="crm.gone")
    path = address(world.employee, "change")
    assert admin.post(path, filled_form(admin, path, job_title="Steward")).status_code == 302
    assert world.employee.grants.filter(tool="crm.gone").exists()
    assert admin.post(path, filled_form(admin, path, allowed_tools=[SEARCH])).status_code == 302
    assert not world.employee.grants.filter(tool="crm.gone").exists()


def test_a_new_employee_has_no_tools_by_default(world: World, admin: Client) -> None:
    response = admin.post(address(Employee, "add"), new_employee(world))
    assert response.status_code == 302, faults(response)
    made = Employee.objects.get(name="Robin")
    assert made.organization == world.acme
    assert not made.grants.exists()


def test_a_provider_of_another_organization_cannot_be_chosen(world: World, admin: Client) -> None:
    foreign = world.others_employee.provider_id
    told = faults(admin.post(address(Employee, "add"), new_employee(world, provider=foreign)))
    assert "provider" in told
    path = address(world.employee, "change")
    assert "provider" in faults(admin.post(path, filled_form(admin, path, provider=foreign)))
    assert not Employee.objects.filter(organization=world.acme, provider_id=foreign).exists()


def test_an_admin_of_two_organizations_cannot_mix_their_rows(world: World, admin: Client) -> None:
    Membership.objects.create(organization=world.globex, user=world.users["admin"], role=Role.ADMIN)
    foreign = world.others_employee.provider_id
    told = faults(admin.post(address(Employee, "add"), new_employee(world, provider=foreign)))
    assert "another organization" in told["provider"][0]


def test_an_employee_cannot_be_created_in_or_moved_to_another_organization(
    world: World, admin: Client
) -> None:
    told = faults(
        admin.post(address(Employee, "add"), new_employee(world, organization=world.globex.pk))
    )
    assert "organization" in told
    path = address(world.employee, "change")
    assert (
        admin.post(path, filled_form(admin, path, organization=world.globex.pk)).status_code == 302
    )
    world.employee.refresh_from_db()
    assert world.employee.organization == world.acme


def test_an_employee_with_a_real_model_needs_a_model_name(world: World, admin: Client) -> None:
    real = ModelProvider.objects.create(
        organization=world.acme, name="Real", kind=ProviderKind.OPENAI
    )
    told = faults(
        admin.post(address(Employee, "add"), new_employee(world, provider=real.pk, model=""))
    )
    assert "model" in told


@pytest.mark.parametrize(
    "name", ["", "no_such_script", "../scripts/clerk", "clerk.yaml", "clerk/", "clerk; rm"]
)
def test_a_scripted_employee_needs_the_name_of_an_installed_script(
    world: World, admin: Client, settings: Settings, tmp_path: Path, name: str
) -> None:
    settings.GADGET_SCRIPTS_DIR = tmp_path / "scripts"
    write_script("scripts: [{task: ., answer: Done.}]", SCRIPT)
    told = faults(admin.post(address(Employee, "add"), new_employee(world, model=name)))
    assert told["model"][0].endswith(". This installation has: clerk.")
    assert admin.post(address(Employee, "add"), new_employee(world)).status_code == 302


def test_an_invalid_script_is_refused_with_the_location_of_the_error(
    world: World, admin: Client
) -> None:
    name = write_script("scripts: [{task: '(', answer: x}]")
    told = faults(admin.post(address(Employee, "add"), new_employee(world, model=name)))
    assert "The script is wrong: scripts[0].task" in told["model"][0]


def test_the_error_for_a_missing_model_suggests_a_model_for_the_kind_of_provider(
    world: World, admin: Client
) -> None:
    local = ModelProvider.objects.create(
        organization=world.acme, name="Local", kind=ProviderKind.OLLAMA
    )
    told = faults(
        admin.post(address(Employee, "add"), new_employee(world, provider=local.pk, model=""))
    )
    assert "e.g. qwen3" in told["model"][0]


def test_model_settings_are_stored_and_audited(world: World, admin: Client) -> None:
    path = address(world.employee, "change")
    given = {
        "temperature": "0.2",
        "max_tokens": "900",
        "num_ctx": "16384",
        "extra_body": '{"top_p": 0.9}',
    }
    response = admin.post(path, filled_form(admin, path, **given))
    assert response.status_code == 302, faults(response)
    world.employee.refresh_from_db()
    employee = world.employee
    assert (employee.temperature, employee.max_tokens, employee.num_ctx) == (0.2, 900, 16384)
    assert employee.extra_body == {"top_p": 0.9}
    told = AuditEntry.objects.get(organization=world.acme).payload["fields"]
    assert told["temperature"] == {"before": None, "after": 0.2}
    assert told["extra_body"] == {"before": {}, "after": {"top_p": 0.9}}
    nothing = dict.fromkeys(given, "")
    assert admin.post(path, filled_form(admin, path, **nothing)).status_code == 302
    world.employee.refresh_from_db()
    employee = world.employee
    assert (employee.temperature, employee.max_tokens, employee.num_ctx, employee.extra_body) == (
        None,
        None,
        None,
        {},
    )


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("temperature", "2.1", "from 0 to 2"),
        ("temperature", "-0.1", "from 0 to 2"),
        ("temperature", "nan", "number"),
        ("max_tokens", "0", "at least 1 token"),
        ("num_ctx", "255", "at least 256 tokens"),
        ("extra_body", "{", "This is not JSON"),
        ("extra_body", "[]", "Write a JSON object"),
        ("extra_body", "null", "Write a JSON object"),
        ("extra_body", '"text"', "Write a JSON object"),
        ("extra_body", '{"tools": [], "stream": false}', "Leave out tools, stream"),
        ("extra_body", '{"model": "x"}', "Leave out model"),
        ("extra_body", '{"messages": []}', "Leave out messages"),
        ("extra_body", '{"a": NaN}', "cannot be sent as JSON"),
        ("extra_body", '{"a": "\\u0000"}', "cannot be sent as JSON"),
        ("extra_body", '{"a": "' + "x" * 10_000 + '"}', "at most 10000"),
    ],
)
def test_unsupported_model_settings_are_refused_in_plain_words(
    world: World, admin: Client, field: str, value: str, words: str
) -> None:
    path = address(world.employee, "change")
    response = admin.post(path, filled_form(admin, path, **{field: value}))
    assert any(words in fault for fault in faults(response)[field]), faults(response)
    assert not AuditEntry.objects.exists()


def test_example_tasks_are_entered_one_per_line(world: World, admin: Client) -> None:
    path = address(world.employee, "change")
    sent = filled_form(admin, path, example_tasks="Tidy up.\n\n  Count them. \nTidy up.")
    assert admin.post(path, sent).status_code == 302
    world.employee.refresh_from_db()
    assert world.employee.example_tasks == ["Tidy up.", "Count them."]


def test_a_change_is_audited_with_the_previous_values(world: World, admin: Client) -> None:
    path = address(world.employee, "change")
    admin.post(path, filled_form(admin, path, allowed_tools=[SEARCH]))
    entry = AuditEntry.objects.get(organization=world.acme)
    assert (entry.actor, entry.action) == ("user:admin", "employee_changed")
    told = entry.payload["fields"]["allowed_tools"]
    assert (set(told["before"]), told["after"]) == ({SEARCH, UPDATE, DELETE}, [SEARCH])
    assert verify_audit(world.acme.pk) == []


def test_saving_an_unchanged_form_does_not_add_an_audit_entry(world: World, admin: Client) -> None:
    path = address(world.employee, "change")
    assert admin.post(path, filled_form(admin, path)).status_code == 302
    assert not AuditEntry.objects.exists()


def test_an_employee_with_runs_cannot_be_deleted(world: World, admin: Client) -> None:
    world.run()
    response = admin.post(address(world.employee, "delete"), {"post": "yes"})
    assert response.status_code in {200, 403}
    assert Employee.objects.filter(pk=world.employee.pk).exists()


def test_deleting_an_unused_employee_is_audited(world: World, admin: Client) -> None:
    admin.post(address(Employee, "add"), new_employee(world))
    made = Employee.objects.get(name="Robin")
    assert admin.post(address(made, "delete"), {"post": "yes"}).status_code == 302
    assert not Employee.objects.filter(pk=made.pk).exists()
    actions = (
        AuditEntry.objects.filter(organization=world.acme)
        .order_by("seq")
        .values_list("action", flat=True)
    )
    assert list(actions) == ["employee_added", "employee_deleted"]
