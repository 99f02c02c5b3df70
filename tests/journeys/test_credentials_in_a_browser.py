"""In a browser: an admin stores credentials, which no page shows again; the forms are
accessible."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from pytest_django import DjangoDbBlocker

from agents.accounts.members import update_admin_access
from agents.accounts.models import Credential
from tests.emptying import empty_tables
from tests.journeys.conftest import UNSAFE
from tests.journeys.office import Office
from tests.journeys.test_accessibility import find_faults
from tests.journeys.visitor import Visit
from tests.probes import RECORDER_VARIABLE
from tests.processes import Installation
from tests.recorder import Recorder

pytestmark = pytest.mark.once

TOKEN = "marker-of-acme-1234"


@pytest.fixture(scope="module")
def installation(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, recorder: Recorder
) -> Iterator[Installation]:
    """Yield a separate Gadget: one that served other journeys still caches deleted content
    types."""
    with Installation(variables={RECORDER_VARIABLE: recorder.url, UNSAFE: ""}) as running:
        running.start_all()
        yield running
    with django_db_blocker.unblock():
        empty_tables()


def test_a_value_is_stored_and_not_shown_again(office: Office, visit: Visit) -> None:
    update_admin_access(office.workshop.admin.user)
    page = visit("admin").page
    faults: list[str] = []
    for service in ("", "?for=slack", "?for=other"):
        page.goto(f"/admin/accounts/credential/add/{service}")
        faults += find_faults(page, service)
    page.locator("[name=value_1]").fill(TOKEN)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Enter the name of the field for this value.")).to_be_visible()
    expect(page.locator("[name=value_1]")).to_have_value("")
    expect(page.get_by_text("Enter it again")).to_be_visible()
    page.goto("/admin/accounts/credential/add/")
    page.get_by_role("link", name="Slack").click()
    page.locator("[name=value_token]").fill(TOKEN)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#result_list")).to_contain_text("slack")
    assert TOKEN not in page.content()
    page.locator("#result_list").get_by_role("link", name="slack").first.click()
    expect(page.locator("[name=value_token]")).to_have_value("")
    expect(page.get_by_text("A value is stored. Leave empty to keep it.")).to_be_visible()
    assert TOKEN not in page.content()
    faults += find_faults(page, "change")
    assert not faults, "\n".join(faults)
    assert TOKEN in Credential.objects.get(organization=office.workshop.organization).fields
