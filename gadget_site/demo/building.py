"""Build the demo or update an existing one, without duplicates."""

from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from agents.accounts import audit
from agents.accounts.members import update_admin_access
from agents.accounts.models import Membership, Organization, Role
from agents.admin.delegates import list_delegate_names, set_delegates
from agents.admin.employees import set_grants
from agents.employees.models import Employee, ModelProvider, ProviderKind
from agents.notices.channels import add_known_email, can_send_mail
from agents.notices.models import Channel
from gadget_site.demo import staff
from gadget_site.demo.names import EMAIL_DOMAIN, ORGANIZATION, OTHER_ORGANIZATION, PASSWORD
from tools.registries.records import RECORD_STORE
from tools.schedules.models import Schedule

MAX_PASSES = 10
ACTOR = "manage.py demo"
REAL_MODEL_PROVIDER = "Real model"


@dataclass(frozen=True)
class RealModel:
    """A real model for one more demo employee; `usual` is the model's name if `model` is empty."""

    kind: ProviderKind
    base_url: str
    api_key: str
    model: str
    usual: str

    @property
    def name(self) -> str:
        return self.model or self.usual


@dataclass
class DemoChanges:
    """The changes made while building the demo, as short texts.

    Attributes:
        resets: True to restore the demo's values in existing rows, and create deleted rows again.
    """

    resets: bool
    changes: list[str] = field(default_factory=list)

    def note(self, change: str) -> None:
        self.changes.append(change)


def build(real_model: RealModel | None = None, *, resets: bool = True) -> DemoChanges:
    """Create `acme-demo` and `other-demo` with people, employees and records, in one transaction.

    Existing accounts keep their password, and existing records stay unchanged. With `resets`,
    employees and their providers get the demo's values again, and missing records are added.
    Without it, as at every start, only missing rows are added, except records, and the real model's
    provider is set from the environment.
    """
    built = DemoChanges(resets)
    with transaction.atomic():
        _build_acme(built, real_model)
        _build_other(built)
    return built


def _build_acme(built: DemoChanges, real_model: RealModel | None) -> None:
    started = len(built.changes)
    needs_records = built.resets or not Organization.objects.filter(slug=ORGANIZATION).exists()
    organization = _add_organization(ORGANIZATION, "Acme (demo)", built)
    for username, role in staff.PEOPLE.items():
        _add_member(organization, username, role, built)
    for worker in staff.SCRIPTED_WORKERS:
        _add_employee(
            organization, worker, _add_script_provider(organization, worker, built), built
        )
    if real_model is not None:
        provider, has_new_kind = _add_model_provider(organization, real_model, built)
        worker = replace(staff.ON_A_REAL_MODEL, model=real_model.name)
        employee = _add_employee(organization, worker, provider, built)
        if real_model.model or has_new_kind:
            _update_row(employee, {"model": real_model.name}, built)
    _add_paused_schedule(organization, built)
    if needs_records and (added := RECORD_STORE.get().add_demo_companies(organization.pk)):
        built.note(f"{added} records in {organization.slug}")
    _record_changes(organization, built.changes[started:])


def _build_other(built: DemoChanges) -> None:
    started = len(built.changes)
    organization = _add_organization(OTHER_ORGANIZATION, "Other (demo)", built)
    _add_member(organization, staff.OUTSIDER, Role.ADMIN, built)
    worker = staff.OUTSIDERS_WORKER
    _add_employee(organization, worker, _add_script_provider(organization, worker, built), built)
    store = RECORD_STORE.get()
    there = set(store.get_records(organization.pk).values_list("name", flat=True))
    for fields in staff.OUTSIDERS_RECORDS:
        if fields["name"] not in there:
            store.create_record(organization.pk, fields, ACTOR)
            built.note(f"the record {fields['name']} in {organization.slug}")
    _record_changes(organization, built.changes[started:])


def _record_changes(organization: Organization, changes: list[str]) -> None:
    if changes:
        entry = audit.NewEntry(
            ACTOR, "demo_built", f"organization:{organization.pk}", {"changes": changes}
        )
        audit.append(organization.pk, [entry])


def _add_organization(slug: str, name: str, built: DemoChanges) -> Organization:
    organization, is_new = Organization.objects.get_or_create(slug=slug, defaults={"name": name})
    if is_new:
        built.note(f"the organization {slug}")
    return organization


def _add_member(organization: Organization, username: str, role: Role, built: DemoChanges) -> None:
    user = User.objects.filter(username=username).first()
    if user is None:
        user = User.objects.create_user(
            username, email=f"{username}@{EMAIL_DOMAIN}", password=PASSWORD
        )
        built.note(f"the account {username}")
    _, is_new = Membership.objects.get_or_create(
        organization=organization, user=user, defaults={"role": role}
    )
    if is_new:
        built.note(f"{username} as {role.value} of {organization.slug}")
        update_admin_access(user)
        _add_address(organization, user)


def _add_address(organization: Organization, user: User) -> None:
    """Give a member an email address, so that the notices page shows what would be sent; skip this
    if mail is really sent."""
    if not can_send_mail():
        membership = Membership.objects.get(organization=organization, user=user)
        if not Channel.objects.filter(membership=membership).exists():
            add_known_email(membership, user.email)


def _add_script_provider(
    organization: Organization, worker: staff.Worker, built: DemoChanges
) -> ModelProvider:
    provider, is_new = ModelProvider.objects.get_or_create(
        organization=organization,
        name=f"Script of {worker.name}",
        defaults={"kind": ProviderKind.SCRIPTED},
    )
    if is_new or built.resets:
        _update_row(provider, {"kind": ProviderKind.SCRIPTED}, built)
    return provider


def _add_model_provider(
    organization: Organization, real: RealModel, built: DemoChanges
) -> tuple[ModelProvider, bool]:
    """Create or update the real model's provider. Return the provider, and True if its kind
    changed: each kind has its own model names."""
    provider, _ = ModelProvider.objects.get_or_create(
        organization=organization, name=REAL_MODEL_PROVIDER
    )
    wanted = {"kind": real.kind, "base_url": real.base_url, "api_key": real.api_key}
    has_new_kind = provider.kind != real.kind
    _update_row(provider, wanted, built)
    return provider, has_new_kind


def _add_employee(
    organization: Organization, worker: staff.Worker, provider: ModelProvider, built: DemoChanges
) -> Employee:
    employee, is_new = Employee.objects.get_or_create(
        organization=organization, name=worker.name, defaults={"provider": provider}
    )
    wanted = {
        "job_title": worker.job_title,
        "instructions": worker.instructions,
        "provider": provider,
        "model": worker.model,
        "max_passes": MAX_PASSES,
        "example_tasks": list(worker.example_tasks),
    }
    if not (is_new or built.resets):
        if not employee.model:  # an older version kept the demo's scripts in the database
            _update_row(employee, {"model": worker.model}, built)
        return employee
    _update_row(employee, wanted, built)
    if set(employee.grants.values_list("tool", flat=True)) != set(worker.allowed_tools):
        set_grants(employee, list(worker.allowed_tools))
        built.note(f"the allowed tools of {worker.name}")
    if list_delegate_names(employee) != sorted(worker.delegates):
        set_delegates(employee, worker.delegates)
        built.note(f"the colleagues of {worker.name}")
    return employee


def _add_paused_schedule(organization: Organization, built: DemoChanges) -> None:
    """Add an example schedule, which is paused until somebody resumes it, unless the organization
    already has a schedule."""
    if not Schedule.objects.filter(organization=organization).exists():
        name, task, cron, time_zone = staff.SCHEDULED
        operator = User.objects.get(username="operator")
        Schedule.objects.create(
            organization=organization,
            employee=Employee.objects.get(organization=organization, name=name),
            task=task,
            cron=cron,
            time_zone=time_zone,
            is_active=False,
            created_by=operator,
            made_by=operator,
        )
        built.note(f"a paused schedule of {name}")


def _update_row(row: ModelProvider | Employee, wanted: dict[str, Any], built: DemoChanges) -> None:
    stale = [name for name, value in wanted.items() if getattr(row, name) != value]
    if stale:
        for name in stale:
            setattr(row, name, wanted[name])
        row.save()
        built.note(f"{row._meta.verbose_name} {row.name}")
