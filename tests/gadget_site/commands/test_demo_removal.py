"""Demo accounts do not outlive the demo: open accounts are reported and can be removed, and while
they exist, Gadget does not accept connections from other machines."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db.models.functions import Now
from pytest_django import Settings

from agents.accounts.models import Membership, Organization, Role
from agents.employees.models import Employee, ModelProvider, ProviderKind
from agents.runs.engine.timing import timing
from agents.runs.models import Run, RunStatus
from gadget_site.demo.accounts import (
    MAX_CHECKED,
    OpenDemoAccountsError,
    check_before_listening,
    find_open_accounts,
)
from gadget_site.demo.names import PASSWORD
from gadget_site.management.processes import build_web_process
from tests.audit_chain import verify_audit
from tests.gadget_site.commands.demo_world import build_demo
from tests.gadget_site.test_doctor import examined
from tests.processes import Installation
from tools.office.files.changes import write_file

pytestmark = pytest.mark.django_db(transaction=True)
EVERYBODY = ["viewer", "operator", "approver", "admin", "outsider"]


@pytest.fixture
def demo() -> None:
    build_demo()


def removed() -> str:
    told = io.StringIO()
    call_command("demo", "--remove", stdout=told)
    return told.getvalue()


def give_own_passwords() -> None:
    for user in User.objects.all():
        user.set_password(f"own password of {user.pk}")
        user.save()


def test_every_active_account_with_the_demo_password_is_listed(demo: None) -> None:
    assert find_open_accounts() == EVERYBODY
    User.objects.filter(username="viewer").update(is_active=False)
    changed = User.objects.get(username="operator")
    changed.set_password("a password of its own")
    changed.save()
    User.objects.filter(username="approver").update(username="renamed")
    User.objects.create_superuser("root", password=PASSWORD)
    assert sorted(find_open_accounts()) == ["admin", "outsider", "renamed", "root"]


def test_the_number_of_accounts_checked_is_limited(demo: None) -> None:
    for number in range(MAX_CHECKED):
        User.objects.create_superuser(f"root{number}", password=PASSWORD)
    assert len(find_open_accounts()) == MAX_CHECKED
    assert find_open_accounts()[:5] == EVERYBODY


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.5", "gadget.example.com"])
def test_listening_to_other_machines_is_refused_while_demo_accounts_are_open(
    demo: None, settings: Settings, host: str
) -> None:
    settings.GADGET_HOST = host
    with pytest.raises(
        OpenDemoAccountsError,
        match=r"still works for: viewer, operator, approver, admin, outsider\..*--remove",
    ):
        check_before_listening()
    give_own_passwords()
    assert not check_before_listening()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_open_accounts_cause_only_a_warning_if_no_other_machine_can_connect(
    demo: None, settings: Settings, host: str
) -> None:
    settings.GADGET_HOST = host
    assert "still works for: viewer" in check_before_listening()
    settings.DEBUG = True
    assert not check_before_listening()


def test_the_web_part_refuses_to_listen_to_other_machines_while_demo_accounts_are_open(
    demo: None, installation: Installation
) -> None:
    installation.variables = {"HOST": "0.0.0.0"}
    web = installation.spawn(build_web_process())
    web.await_line(
        "Gadget cannot start. The demo's password, which everybody knows, still works for: viewer"
    )
    assert web.wait_for_end() == 1
    assert "Traceback" not in web.output


@pytest.mark.usefixtures("redis_url")
def test_the_doctor_reports_open_accounts(demo: None) -> None:
    _, findings = examined()
    (finding,) = [each for each in findings if each["subject"] == "accounts"]
    assert "viewer, operator, approver, admin, outsider" in finding["text"]
    assert "manage.py demo --remove" in finding["fix"]


def test_the_demo_password_cannot_be_chosen() -> None:
    with pytest.raises(ValidationError, match="the demo's password"):
        validate_password(PASSWORD)


def test_removal_deletes_the_demo_and_nothing_else(demo: None) -> None:
    world = build_demo()
    run = world.work("Dana", world.employee("Dana").example_tasks[0])
    world.approve(world.cards(run)[0])
    write_file(world.organization.pk, ("a.txt",), [b"x"], lambda _: None)
    real = Organization.objects.create(name="Real", slug="real")
    ann = User.objects.create_user("ann", password="a password of her own")
    Membership.objects.create(organization=real, user=ann, role=Role.ADMIN)
    told = removed()
    assert "removed: the organization acme-demo with everything in it" in told
    assert "removed: the account viewer" in told
    assert [each.slug for each in Organization.objects.all()] == ["real"]
    assert [each.username for each in User.objects.all()] == ["ann"]
    assert not Run.objects.exists()
    assert "There was no demo to remove." in removed()
    assert verify_audit(real.pk) == []


def test_removal_deletes_the_demos_files(demo: None, settings: Settings, tmp_path: Path) -> None:
    settings.GADGET_FILES_DIR = tmp_path
    acme = Organization.objects.get(slug="acme-demo")
    write_file(acme.pk, ("a.txt",), [b"x"], lambda _: None)
    write_file(999, ("b.txt",), [b"x"], lambda _: None)
    removed()
    assert [each.name for each in tmp_path.iterdir()] == ["999"]


def test_removal_deletes_delegated_runs(demo: None) -> None:
    world = build_demo()
    world.work("Dana", world.employee("Dana").example_tasks[2])
    assert Run.objects.filter(parent__isnull=False).exists()
    removed()
    assert not Run.objects.exists()


def test_accounts_that_others_need_are_kept_and_listed(demo: None) -> None:
    real = Organization.objects.create(name="Real", slug="real")
    Membership.objects.create(
        organization=real, user=User.objects.get(username="viewer"), role=Role.VIEWER
    )
    User.objects.filter(username="admin").update(is_superuser=True)
    User.objects.filter(username="operator").update(email="operator@real.example")
    told = removed()
    assert "kept: viewer: it is a member of real" in told
    assert "kept: admin: it is not the demo's own account" in told
    assert "kept: operator: it is not the demo's own account" in told
    assert "still works for: viewer, operator, admin" in told
    assert sorted(User.objects.values_list("username", flat=True)) == [
        "admin",
        "operator",
        "viewer",
    ]


def test_an_account_in_the_history_of_another_organization_is_closed(demo: None) -> None:
    real = Organization.objects.create(name="Real", slug="real")
    provider = ModelProvider.objects.create(
        organization=real, name="Script", kind=ProviderKind.SCRIPTED
    )
    employee = Employee.objects.create(organization=real, name="Erin", provider=provider)
    operator = User.objects.get(username="operator")
    Run.objects.create(organization=real, employee=employee, created_by=operator, task="x")
    assert "removed: the login of operator; its name stays" in removed()
    operator.refresh_from_db()
    assert not operator.is_active
    assert not operator.has_usable_password()


def test_removal_is_refused_while_a_run_is_driven(demo: None) -> None:
    world = build_demo()
    run = world.work("Dana", world.employee("Dana").example_tasks[0])
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.RUNNING, lease_owner="w", lease_expires_at=Now() + timing().lease
    )
    with pytest.raises(CommandError, match="1 demo runs are in progress"):
        removed()
    assert Organization.objects.count() == 2
