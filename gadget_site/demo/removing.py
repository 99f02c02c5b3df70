"""Remove the demo: its organizations with everything in them, and accounts that are not needed for
anything else."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import ProtectedError
from django.db.models.functions import Now

from agents.accounts.models import Membership, Organization
from agents.employees.models import Employee, ModelProvider
from agents.runs.models import Run, RunStatus
from gadget_site.demo.accounts import USERNAMES
from gadget_site.demo.names import EMAIL_DOMAIN, ORGANIZATIONS
from tools.schedules.models import Schedule


class DemoAtWorkError(Exception):
    """The demo cannot be removed, because a worker is driving one of its runs."""


@dataclass
class Removal:
    """Everything that was removed, and the accounts that were kept, each with its reason."""

    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


def remove() -> Removal:
    """Remove both organizations, with their audit, and the demo's accounts in one transaction; then
    remove the organizations' files.

    Raises:
        DemoAtWorkError: a demo run is in progress; nothing was removed.
    """
    removal = Removal()
    with transaction.atomic():
        organizations = list(
            Organization.objects.select_for_update().filter(slug__in=ORGANIZATIONS)
        )
        _refuse_active_runs(organizations)
        folders = [
            Path(settings.GADGET_FILES_DIR, str(organization.pk)) for organization in organizations
        ]
        for organization in organizations:
            _remove_organization(organization)
            removal.removed.append(f"the organization {organization.slug} with everything in it")
        for user in User.objects.filter(username__in=USERNAMES).order_by("pk"):
            _remove_account(user, removal)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    return removal


def _refuse_active_runs(organizations: list[Organization]) -> None:
    driven = Run.objects.filter(
        organization__in=organizations, status=RunStatus.RUNNING, lease_expires_at__gte=Now()
    ).count()
    if driven:
        raise DemoAtWorkError(
            f"{driven} demo runs are in progress. Cancel them or stop Gadget, and try again."
        )


def _remove_organization(organization: Organization) -> None:
    """Delete an organization. Delete delegated runs first: the database protects rows that other
    rows refer to."""
    runs = Run.objects.filter(organization=organization)
    while runs.filter(children__isnull=True).delete()[0]:
        continue
    Schedule.objects.filter(organization=organization).delete()
    Employee.objects.filter(organization=organization).delete()
    ModelProvider.objects.filter(organization=organization).delete()
    organization.delete()


def _remove_account(user: User, removal: Removal) -> None:
    """Remove an account that only the demo needs, or only its login if another organization's
    history names it. Keep any other account, and record the reason."""
    name = user.username
    if user.is_superuser or user.email != f"{name}@{EMAIL_DOMAIN}":
        removal.kept.append(f"{name}: it is not the demo's own account")
        return
    others = Membership.objects.filter(user=user).values_list("organization__slug", flat=True)
    if slugs := ", ".join(others):
        removal.kept.append(f"{name}: it is a member of {slugs}")
        return
    try:
        with transaction.atomic():
            user.delete()
    except ProtectedError:
        user.is_active = user.is_staff = False
        user.set_unusable_password()
        user.save()
        removal.removed.append(
            f"the login of {name}; its name stays in the history of another organization"
        )
        return
    removal.removed.append(f"the account {name}")
