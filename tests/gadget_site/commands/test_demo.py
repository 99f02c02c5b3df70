"""`manage.py demo` creates two organizations, can be repeated, and is refused on installations
where it could do harm."""

from io import StringIO

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db.models.functions import Now
from pytest_django import DjangoAssertNumQueries, Settings

from agents.accounts.models import Membership, Organization, Role
from agents.employees.models import Employee, Grant, ModelProvider
from agents.employees.toolboxes import get_installed_toolbox
from agents.providers.script_format import load_scripts
from agents.providers.script_patterns import find_groups
from gadget_site.demo import building
from gadget_site.demo.staff import PEOPLE, SCRIPTED_WORKERS
from gadget_site.settings import GADGET_SCRIPTS_DIR
from tests.audit_chain import verify_audit
from tools.contract import Level
from tools.office.records.models import Record
from tools.schedules.cron_times import parse_cron
from tools.schedules.models import Schedule

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def debug(settings: Settings) -> None:
    settings.DEBUG = True


def run_demo(*arguments: str) -> str:
    told = StringIO()
    call_command("demo", *arguments, stdout=told)
    return told.getvalue()


def rows() -> dict[str, int]:
    kinds = (Organization, User, Membership, ModelProvider, Employee, Grant, Record)
    return {kind.__name__: kind._default_manager.count() for kind in kinds}


def audit_entries() -> int:
    return sum(organization.audit_entries.count() for organization in Organization.objects.all())


def level_of(tool: str) -> Level:
    found = get_installed_toolbox().get_tool(tool)
    assert found is not None, f"{tool} is granted but not installed"
    return found.level


def test_the_command_prints_the_users_and_their_password() -> None:
    told = run_demo()
    for word in ("viewer", "operator", "approver", "admin", "outsider", "gadget-demo"):
        assert word in told


def test_every_role_has_a_person_who_can_log_in() -> None:
    run_demo()
    acme = Organization.objects.get(slug="acme-demo")
    for username, role in PEOPLE.items():
        assert authenticate(None, username=username, password="gadget-demo") is not None
        assert Membership.objects.get(user__username=username).role == role
    assert acme.memberships.count() == 4
    assert [
        member.organization.slug for member in Membership.objects.filter(user__username="outsider")
    ] == ["other-demo"]


def test_nobody_is_a_superuser_and_only_admins_can_open_the_admin() -> None:
    run_demo()
    assert not User.objects.filter(is_superuser=True).exists()
    assert set(User.objects.filter(is_staff=True).values_list("username", flat=True)) == {
        "admin",
        "outsider",
    }


def test_the_highest_levels_of_the_employees_tools_are_draft_write_and_destructive() -> None:
    run_demo()
    highest = {
        employee.name: max(
            (level_of(grant.tool) for grant in employee.grants.all()), key=lambda level: level.rank
        )
        for employee in Employee.objects.filter(organization__slug="acme-demo")
    }
    assert highest == {
        "Robin": Level.DRAFT,
        "Dana": Level.WRITE,
        "Morgan": Level.DESTRUCTIVE,
        "Sam": Level.WRITE,
    }


def test_each_employees_example_tasks_are_exactly_the_tasks_of_its_scripts() -> None:
    run_demo()
    for worker in SCRIPTED_WORKERS:
        employee = Employee.objects.get(organization__slug="acme-demo", name=worker.name)
        scripts = load_scripts(GADGET_SCRIPTS_DIR, employee.model)
        assert {script.title for script in scripts} == set(employee.example_tasks)
        for task in employee.example_tasks:
            assert any(find_groups(script.task, task) is not None for script in scripts), task


def test_500_companies_are_created_in_the_main_organization_and_three_in_the_other() -> None:
    run_demo()
    assert Record.objects.filter(organization__slug="acme-demo").count() == 500
    assert Record.objects.filter(organization__slug="other-demo").count() == 3


def test_repeating_the_command_creates_nothing_and_reports_that_the_demo_is_up_to_date() -> None:
    run_demo()
    before = rows()
    assert "up to date" in run_demo()
    assert rows() == before


def test_an_employee_with_a_changed_script_is_reset_and_the_reset_is_audited() -> None:
    run_demo()
    Employee.objects.filter(name="Dana").update(model="researcher")
    assert "employee Dana" in run_demo()
    assert Employee.objects.get(name="Dana").model == "data_steward"
    for organization in Organization.objects.all():
        assert verify_audit(organization.pk) == []
        assert organization.audit_entries.filter(action="demo_built").exists()


def test_an_existing_account_keeps_its_password_and_rights() -> None:
    User.objects.create_superuser("admin", password="my own password")
    run_demo()
    assert authenticate(None, username="admin", password="my own password") is not None
    assert authenticate(None, username="admin", password="gadget-demo") is None


def test_the_command_is_refused_without_debug_unless_forced(settings: Settings) -> None:
    settings.DEBUG = False
    with pytest.raises(CommandError, match="--force"):
        run_demo()
    assert not Organization.objects.exists()
    run_demo("--force")
    assert Organization.objects.count() == 2


def test_an_employee_that_uses_the_configured_model_is_added(settings: Settings) -> None:
    run_demo()
    assert not Employee.objects.filter(name="Alex").exists()
    settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = "http://localhost:9/v1", "sk-demo"
    settings.OPENAI_MODEL = "small-model"
    told = run_demo()
    assert "sk-demo" not in told
    alex = Employee.objects.select_related("provider").get(name="Alex")
    assert (alex.model, alex.provider.kind) == ("small-model", "openai")
    assert (alex.provider.base_url, alex.provider.api_key) == ("http://localhost:9/v1", "sk-demo")
    assert "up to date" in run_demo()


def test_an_employee_that_uses_ollama_is_added(settings: Settings) -> None:
    settings.OLLAMA_HOST = "http://localhost:9"
    run_demo()
    alex = Employee.objects.select_related("provider").get(name="Alex")
    assert (alex.model, alex.provider.kind) == ("qwen3", "ollama")
    assert (alex.provider.base_url, alex.provider.api_key) == ("http://localhost:9", "")
    settings.OLLAMA_MODEL = "llama3.1:8b"
    run_demo()
    alex.refresh_from_db()
    assert alex.model == "llama3.1:8b"


def test_an_openai_compatible_server_takes_precedence_over_ollama(settings: Settings) -> None:
    settings.OLLAMA_HOST, settings.OPENAI_API_KEY = "http://localhost:9", "sk-demo"
    run_demo()
    alex = Employee.objects.select_related("provider").get(name="Alex")
    assert (alex.model, alex.provider.kind) == ("gpt-5-mini", "openai")


def test_repeating_the_command_needs_few_queries(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    building.build()
    with django_assert_max_num_queries(60):
        building.build()


def test_the_example_schedule_is_paused_and_not_recreated_after_it_was_cancelled() -> None:
    run_demo()
    run_demo()
    schedule = Schedule.objects.get()
    assert schedule.employee is not None
    assert (schedule.state, schedule.organization.slug) == ("paused", "acme-demo")
    assert schedule.task in schedule.employee.example_tasks
    assert parse_cron(schedule.cron, schedule.time_zone) == schedule.times
    Schedule.objects.all().update(cancelled_at=Now())
    run_demo()
    assert Schedule.objects.count() == 1


def test_every_role_has_a_demo_account() -> None:
    assert set(PEOPLE.values()) == set(Role)


def test_deleted_rows_are_restored_by_the_command_but_not_at_startup() -> None:
    run_demo()
    Record.objects.filter(organization__slug="acme-demo").first().delete()  # type: ignore[union-attr]
    left = Record.objects.count()
    run_demo("--keep")
    assert Record.objects.count() == left
    run_demo()
    assert Record.objects.count() == left + 1


def test_the_configuration_is_reset_by_the_command_but_not_at_startup(settings: Settings) -> None:
    settings.OPENAI_API_KEY = "sk-demo"
    run_demo()
    dana, alex = Employee.objects.get(name="Dana"), Employee.objects.get(name="Alex")
    Employee.objects.update(max_passes=3, instructions="As I say.", model="mine")
    Grant.objects.create(employee=alex, tool="crm.listContacts")
    Grant.objects.filter(employee=dana).delete()
    before = (rows(), audit_entries())
    run_demo("--keep")
    assert (rows(), audit_entries()) == before
    dana, alex = Employee.objects.get(pk=dana.pk), Employee.objects.get(pk=alex.pk)
    assert (dana.max_passes, dana.instructions, dana.model, dana.grants.count()) == (
        3,
        "As I say.",
        "mine",
        0,
    )
    assert (alex.model, alex.grants.filter(tool="crm.listContacts").exists()) == ("mine", True)
    run_demo()
    dana.refresh_from_db()
    assert dana.max_passes == building.MAX_PASSES
    assert dana.grants.exists()


def test_employees_without_a_script_get_one_at_startup() -> None:
    run_demo()
    Employee.objects.update(model="", instructions="As I say.")
    run_demo("--keep")
    dana = Employee.objects.get(name="Dana")
    assert (dana.model, dana.instructions) == ("data_steward", "As I say.")


def test_the_real_model_is_updated_from_the_environment_at_startup(settings: Settings) -> None:
    settings.OPENAI_API_KEY = "sk-demo"
    run_demo("--keep")
    settings.OPENAI_API_KEY, settings.OPENAI_MODEL = "sk-other", "large"
    run_demo("--keep")
    alex = Employee.objects.select_related("provider").get(name="Alex")
    assert (alex.model, alex.provider.api_key) == ("large", "sk-other")
    settings.OPENAI_API_KEY, settings.OPENAI_MODEL, settings.OLLAMA_HOST = (
        "",
        "",
        "http://localhost:9",
    )
    run_demo("--keep")
    alex = Employee.objects.select_related("provider").get(name="Alex")
    assert (alex.model, alex.provider.kind) == ("qwen3", "ollama")
