"""In a browser: an admin connects a program and an API, chooses tools and grants them; a run uses
one tool of each."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from pytest_django import DjangoDbBlocker

from agents.accounts.members import update_admin_access
from agents.runs.models import CallStatus, RunStatus, ToolCall
from tests.emptying import empty_tables
from tests.features import feature
from tests.journeys.conftest import UNSAFE
from tests.journeys.office import Office, describe_run, load_run
from tests.journeys.test_accessibility import find_faults
from tests.journeys.visitor import Visit
from tests.model_server import Call, ModelServer, Response
from tests.probes import RECORDER_VARIABLE
from tests.processes import Installation
from tests.recorder import Recorder
from tests.tools.sources.outside import Outside, Reply, described, running

pytestmark = pytest.mark.once

PROGRAM = f"{sys.executable} -m mcp_server_time --local-timezone UTC"
PET = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
PATHS = {
    "/pets": {
        "get": {"operationId": "listPets", "responses": {}},
        "post": {
            "operationId": "addPet",
            "requestBody": {"required": True, "content": {"application/json": {"schema": PET}}},
            "responses": {},
        },
    },
}
SCHEMES = {"k": {"type": "apiKey", "in": "header", "name": "X-Pet-Key"}}
KEY = "key-of-acme-for-pets"
WIDTHS = (360, 768, 1440)


@pytest.fixture(scope="module")
def installation(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, recorder: Recorder
) -> Iterator[Installation]:
    """Yield a separate Gadget: one that served other journeys still caches tools of deleted
    organizations."""
    with Installation(variables={RECORDER_VARIABLE: recorder.url, UNSAFE: ""}) as running_one:
        running_one.start_all()
        yield running_one
    with django_db_blocker.unblock():
        empty_tables()


@pytest.fixture
def pets() -> Iterator[Outside]:
    with running() as api:
        api.replies.append(
            Reply(content=described(PATHS, components={"securitySchemes": SCHEMES}).encode())
        )
        yield api


def save(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()


def confirm(page: Page) -> None:
    """Confirm all consequences, and save again."""
    expect(page.locator("[name=confirmed]").first).to_be_visible()
    for box in page.locator("[name=confirmed]").all():
        box.check()
    save(page)


def visit_as_superuser(office: Office, visit: Visit) -> Page:
    user = office.workshop.admin.user
    user.is_superuser = True
    user.save()
    update_admin_access(user)
    return visit("admin").page


def look(page: Page, where: str) -> list[str]:
    """List the accessibility faults of this page, and the widths at which it scrolls sideways."""
    faults = list(find_faults(page, where))
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        wide = page.evaluate("document.documentElement.scrollWidth")
        faults += [f"{where} is {wide} px wide at {width}"] if wide > width else []
    return faults


def look_at_all(page: Page) -> list[str]:
    """Return the faults of the pages of sources and of the confirmation of a lower level."""
    faults = []
    for kind in ("", "?kind=openapi", "?kind=mcp_http", "?kind=mcp_stdio"):
        page.goto(f"/admin/connections/source/add/{kind}")
        faults += look(page, f"add {kind}")
    page.goto("/admin/connections/source/")
    faults += look(page, "list")
    page.locator("#result_list").get_by_role("link", name="pets", exact=True).first.click()
    faults += look(page, "settings")
    page.get_by_role("link", name="Choose tools").click()
    faults += look(page, "tools")
    page.get_by_label("Level of “pets.addPet”").select_option("read")
    save(page)
    expect(page.get_by_text("Not saved yet")).to_be_visible()
    return faults + look(page, "question")


def connect_program(page: Page) -> None:
    page.goto("/admin/connections/source/add/")
    page.get_by_role("link", name="MCP server as a local program").click()
    page.locator("[name=name]").fill("clock")
    page.locator("[name=command_line]").fill(PROGRAM)
    save(page)
    confirm(page)
    # Shown once a worker has read the description.
    expect(page.get_by_text("2 of 2 tools")).to_be_visible()
    page.get_by_label("Enable clock.get_current_time").check()
    save(page)
    expect(page.get_by_text("Choose a level for clock.get_current_time")).to_be_visible()
    page.get_by_label("Level of “clock.get_current_time”").select_option("read")
    save(page)


def connect_api(page: Page, api: Outside) -> None:
    page.goto("/admin/connections/source/add/")
    page.get_by_role("link", name="HTTP API with an OpenAPI description").click()
    expect(page.locator("[name=key_name]")).to_be_hidden()
    page.locator("[name=authentication]").select_option("api_key")
    expect(page.locator("[name=token_url]")).to_be_hidden()
    page.locator("[name=key_name]").fill("X-Pet-Key")
    page.locator("[name=name]").fill("pets")
    page.locator("[name=address]").fill(f"{api.url}/openapi.json")
    page.locator("[name=may_be_private]").check()
    save(page)
    confirm(page)
    expect(page.get_by_text("2 of 2 tools")).to_be_visible()
    page.get_by_role("button", name="Enable all 2 shown").click()
    expect(page.get_by_text("Tools changed: 2.")).to_be_visible()
    page.get_by_role("link", name="Add credentials").click()
    page.locator("[name=value_api_key]").fill(KEY)
    save(page)
    expect(page.locator("#result_list")).to_contain_text("pets")


def grant(page: Page, employee_id: int) -> None:
    page.goto(f"/admin/employees/employee/{employee_id}/change/")
    for tool in ("clock.get_current_time", "pets.addPet"):
        page.locator(f"[name=allowed_tools][value='{tool}']").check()
    save(page)
    expect(page.locator("#result_list")).to_be_visible()


@feature(
    "Connected sources",
    "From an empty organization to a granted tool and an approved request, in the browser",
    "agents/admin/sources.py",
    whole_file=True,
)
@pytest.mark.every_commit
def test_newly_connected_tools_run_after_an_approval(
    office: Office, visit: Visit, model: ModelServer, pets: Outside
) -> None:
    shop = office.workshop
    shop.connect(model.url)
    page = visit_as_superuser(office, visit)
    connect_program(page)
    expect(page.get_by_text("Tools changed: 1.")).to_be_visible()
    connect_api(page, pets)
    grant(page, shop.employee.pk)
    asked = len(pets.received)

    model.enqueue(
        Response(
            calls=(
                Call("clock.get_current_time", {"timezone": "UTC"}),
                Call("pets.addPet", {"name": "Rex"}),
            )
        ),
        Response(text="Rex is there."),
        Response(text="Rex is there."),  # on a busy machine, a slow request is sent again
    )
    operator = visit("operator")
    run_id = operator.start(shop.employee.name, "Say the time, and add Rex")
    (card,) = office.await_cards(run_id)
    assert len(pets.received) == asked, "nothing is sent before somebody approves it"
    approver = visit("approver")
    approver.open_run(run_id)
    expect(approver.card(card.pk)).to_contain_text("POST /pets")
    approver.approve(approver.card(card.pk))
    expect(operator.answer).to_contain_text("Rex is there.")
    assert load_run(run_id).status == RunStatus.SUCCEEDED, describe_run(run_id)
    calls = {call.tool: call for call in ToolCall.objects.filter(run_id=run_id)}
    assert {call.status for call in calls.values()} == {CallStatus.SUCCEEDED}
    assert "UTC" in calls["clock.get_current_time"].content
    (sent,) = pets.received[asked:]
    assert (sent.method, sent.target, json.loads(sent.body)) == ("POST", "/pets", {"name": "Rex"})
    assert sent.headers["x-pet-key"] == KEY
    assert KEY not in json.dumps(model.requests)


def test_the_pages_of_sources_fit_every_width_and_have_no_accessibility_faults(
    office: Office, visit: Visit, pets: Outside
) -> None:
    page = visit_as_superuser(office, visit)
    connect_api(page, pets)
    faults = look_at_all(page)
    assert not faults, "\n".join(faults)
