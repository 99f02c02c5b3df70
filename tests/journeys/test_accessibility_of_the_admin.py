"""axe finds no fault in the admin, in light and dark mode: its index, and a sample of lists, add
forms and rows."""

from __future__ import annotations

from datetime import timedelta
from itertools import chain

import pytest
from django.contrib import admin
from django.db.models import Model
from django.utils import timezone

from agents.accounts.members import update_admin_access
from agents.accounts.membership import issue_token
from agents.accounts.models import Credential
from agents.admin.scope import ScopedAdmin
from agents.approval_rules.models import ApprovalRule, ApproverGroup, Deputy
from agents.employees.models import ToolRule
from tests.awaiting import await_that
from tests.journeys.office import Office
from tests.journeys.test_accessibility import find_faults
from tests.journeys.visitor import Visit
from tests.sampling import take_sample
from tests.workshop import asking, call
from tools.connections.models import AllowedHost, Source
from tools.office.records.models import Draft, ListEntry, RecordChange, RecordList

pytestmark = pytest.mark.once

ONE_OF = 6
"""A sample checks one of this many pages."""


@pytest.fixture
def rows(office: Office) -> None:
    """Create at least one row of each model, among them a run with a decided and a pending card."""
    shop = office.workshop
    shop.admin.user.is_superuser = True
    shop.admin.user.save()
    update_admin_access(shop.admin.user)
    record = shop.record()
    search = call("data.searchRecords", region="EU")
    updates = [
        call("data.updateRecord", record_id=str(record.pk), changes={"score": score})
        for score in (1, 2)
    ]
    shop.play(asking(search, *updates, text="I look."))
    card, _ = office.await_cards(office.submit().pk, 2)
    shop.approve(card)
    office.end_grace()
    await_that(RecordChange.objects.exists, "the approved call has changed the record")
    record_list = RecordList.objects.create(organization=shop.organization, name="Weak ones")
    ListEntry.objects.create(list=record_list, record=record)
    Draft.objects.create(
        organization=shop.organization, kind="report", title="A report", body="# One"
    )
    issue_token(shop.admin, "robot")
    ToolRule.objects.create(organization=shop.organization, tool="data.getStats", level="write")
    group = ApproverGroup.objects.create(organization=shop.organization, name="Finance")
    ApprovalRule.objects.create(organization=shop.organization, name="Payments", group=group)
    ends_at = timezone.now() + timedelta(hours=1)
    Deputy.objects.create(member=shop.approver, deputy=shop.admin, ends_at=ends_at)
    Credential.objects.create(
        organization=shop.organization, service="github", fields='{"token": "of-acme"}'
    )
    Source.objects.create(
        organization=shop.organization, kind="openapi", name="crm", address="https://crm.example"
    )
    AllowedHost.objects.create(organization=shop.organization, host="crm.example")


def list_pages(model: type[Model], shown: ScopedAdmin) -> list[str]:
    """List the addresses of the model's list, of its newest row and, if rows can be added, of the
    form for a new one."""
    base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
    newest = model._default_manager.order_by("-pk").first()
    assert newest is not None, f"{model.__name__} needs a row here"
    form = [f"{base}add/"] if shown.may_add else []
    return [base, f"{base}{newest.pk}/change/", *form]


def test_every_page_of_the_admin_passes_axe(office: Office, visit: Visit, rows: None) -> None:
    ours = {
        model: shown
        for model, shown in admin.site._registry.items()
        if isinstance(shown, ScopedAdmin)
    }
    pages = list(chain.from_iterable(list_pages(model, shown) for model, shown in ours.items()))
    places = ["/admin/", *take_sample(pages, ONE_OF, "pages of the admin")]
    visitor = visit("admin")
    faults: list[str] = []
    for path in places:
        response = visitor.page.goto(path)
        assert response is not None
        assert response.ok, f"{path}: {response.status}"
        assert visitor.page.url == f"{office.url}{path}", "the page itself, not the login"
        faults += find_faults(visitor.page, path)
    assert len(pages) > len(ours)
    assert not faults, "\n".join(faults)
