"""axe finds no fault on any page, in light and dark mode (WCAG 2.2 A and AA)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from agents.accounts import invitations, members
from agents.insight.models import ToolFigures
from agents.policy import shadow
from agents.policy.policy_drafts import ChangeKind, PolicyChange
from agents.urls import urlpatterns
from agents.webhooks.changes import WebhookTerms, make_webhook
from agents.webhooks.models import WebhookKind
from tests.journeys.office import Office
from tests.journeys.visitor import Visit
from tests.sampling import take_sample
from tests.triggers.conftest import add_trigger
from tests.web.test_access import READ
from tests.workshop import asking, call, eventually
from tools.office.records.models import Draft

pytestmark = pytest.mark.once

AXE = Axe().axe_script
RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]},
    "resultTypes": ["violations"],
    # Do not preload stylesheets: the rules do not read them, and axe fails on a stylesheet that is
    # imported into a layer.
    "preload": {"assets": ["media"]},
}
WIDER = "() => document.documentElement.scrollWidth - innerWidth"
COLOR_RULES = ("color-contrast", "link-in-text-block")
"""The rules that depend on colors. The others depend only on PAGE_STATE, so they are not repeated
in dark mode.

PAGE_STATE leaves out the admin's scroll bars, which are visible for half a second after scrolling.
"""
PAGE_STATE = """() => [
  document.documentElement.outerHTML.replace(/ simplebar-(scrolling|visible)/g, ""),
  ...[...document.querySelectorAll("*")].map((one) => {
    const box = one.getBoundingClientRect(), style = getComputedStyle(one);
    return [box.x, box.y, box.width, box.height, style.display, style.visibility].join();
  }),
].join()"""
VIOLATIONS = f"""async ([context, rules, isDark]) => {{
  const state = ({PAGE_STATE})(), colorsOnly = isDark && state === window.lightState;
  window.lightState = state;
  if (colorsOnly) rules = {{...rules, runOnly: {{type: "rule", values: {list(COLOR_RULES)}}}}};
  return (await axe.run(context ?? document, rules)).violations;
}}"""
HAS_AXE = "() => 'axe' in window"
PAGE_WITH_A_FORM = (
    "<html lang=en><title>A page</title><style>{style}</style><main><h1>A page</h1><p>Words</p>"
    "<label><span>Name</span><input></label></main>"
)
# Excluded, because they are not pages: fragments, a missing address, and downloads.
PAGES = frozenset(READ) - {
    "card",
    "nothing",
    "audit-export",
    "records-export",
    "draft-download",
    "file-download",
}
PAGES -= {"oversight-export", "transcript-markdown", "transcript-json", "playback-export", "nested"}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def find_faults(page: Page, where: str, besides: str = "") -> Iterator[str]:
    """Find the accessibility faults of the page in its current state, in light and dark mode.

    In dark mode only the rules about colors are checked, unless something else differs there.

    Args:
        besides: a selector of elements to skip, because they were checked before and have not
            changed.
    """
    if not page.evaluate(HAS_AXE):
        page.evaluate(AXE)
    context = {"exclude": [besides]} if besides else None
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        for violation in page.evaluate(VIOLATIONS, [context, RULES, scheme == "dark"]):
            for node in violation["nodes"][:3]:
                yield f"{where} ({scheme}): {violation['id']}: {node['target']}: {node['failureSummary'][:300]}"


@pytest.fixture
def places(office: Office) -> dict[str, str]:
    """Create a waiting run, an ended run and a draft; return the addresses of all pages by name."""
    record = office.workshop.record()
    update = call("data.updateRecord", record_id=str(record.pk), changes={"status": "inactive"})
    search = call("data.searchRecords", region="EU")
    office.workshop.play(
        asking(search, update, call("data.bulkDelete", record_ids=[str(record.pk)]), text="I look.")
    )
    waiting = office.submit()
    card, _ = office.await_cards(waiting.pk, 2)
    office.workshop.play(asking(search), answer="# Done\n\n- one\n- two")
    ended = office.submit("Look again")
    office.await_end(ended.pk)
    eventually(
        lambda: ToolFigures.objects.filter(tool="data.searchRecords", succeeded__gt=0).exists()
    )
    known = {
        "run_id": waiting.pk,
        "approval_id": card.pk,
        "employee_id": office.workshop.employee.pk,
    }
    draft = Draft.objects.create(
        organization=record.organization, kind="report", title="A report", body="# One\n\ntwo"
    )
    known |= {"record_id": record.pk, "draft_id": draft.pk, "call_id": card.tool_call_id}
    change = PolicyChange(ChangeKind.STOP, "data.searchRecords")
    known["policy_draft_id"] = shadow.save_policy_draft(
        office.member("admin"), "No search", (change,)
    ).pk
    known["trigger_id"] = add_trigger(office.workshop).pk
    terms = WebhookTerms("Warehouse", "https://example.com/x", WebhookKind.values)
    known["webhook_id"] = make_webhook(office.member("admin"), terms)[0].pk
    _, secret = invitations.invite(office.member("admin"), invitations.Offer(role="viewer"))
    _, reset_secret = members.create_password_reset(
        office.member("admin"), office.member("viewer").pk
    )
    return {
        "a run that has ended": f"/runs/{ended.pk}/",
        "the history of the inbox": "/approvals/?history=1",
        "the figures of a tool": "/tools/?q=data.searchRecords",
        "login": "/login/",
        "an invitation": f"/join/{secret}/",
        "a new password": f"/new-password/{reset_secret}/",
        **{
            str(one.name): "/" + _fill_in(str(one.pattern), known)
            for one in urlpatterns
            if one.name in PAGES
        },
    }


def _fill_in(route: str, known: dict[str, int]) -> str:
    for name, value in known.items():
        route = route.replace(f"<int:{name}>", str(value))
    return route.replace("tools/<str:name>/", "tools/data.searchRecords/")


@pytest.mark.parametrize("only_in_the_dark", ["p { color: #333 }", "label span { display: none }"])
def test_faults_that_exist_only_in_dark_mode_are_found(
    chromium: Browser, only_in_the_dark: str
) -> None:
    dark = f"@media (prefers-color-scheme: dark) {{ p {{ color: white; background: black }} {only_in_the_dark} }}"
    style = f"p {{ color: black; background: white }} {dark}"
    with chromium.new_context() as context:
        page = context.new_page()
        page.set_content(PAGE_WITH_A_FORM.format(style=style))
        found = list(find_faults(page, "here"))
    assert found
    assert all(fault.startswith("here (dark)") for fault in found), found


@pytest.mark.every_commit
def test_every_page_passes_axe(office: Office, visit: Visit, places: dict[str, str]) -> None:
    faults: list[str] = []
    visitor = visit("admin")
    for name, path in take_sample(list(places.items()), 6, "accessible pages"):
        assert "<" not in path, f"{name} needs a row of its own here"
        response = visitor.page.goto(path)
        assert response is not None
        assert response.ok, f"{path}: {response.status}"
        faults += find_faults(visitor.page, name)
    assert len(places) > len(PAGES)
    assert not faults, "\n".join(faults)


# The page of the REST API, with its sections open


WIDTHS = (1440, 360)


@pytest.mark.parametrize("width", take_sample(WIDTHS, 2, "widths of the page of the API"))
def test_the_api_page_passes_axe_and_fits_every_width(visit: Visit, width: int) -> None:
    page = visit("admin").page
    set_width(page, width)
    page.goto("/api/docs")
    expect(page.locator(".opblock").last).to_be_visible()
    faults: list[str] = []
    for state, opened in API_STATES.items():
        opened(page)
        if state in CHECKED_STATES:
            faults += find_faults(
                page, state, besides="" if state == FIRST_STATE else ".opblock:not(.is-open)"
            )
        for other in (*WIDTHS, width):
            set_width(page, other)
            wider = page.evaluate(WIDER)
            faults += [f"{state}: {wider} px wider than {other} px"] * (wider > 0)
    assert not faults, "\n".join(faults)


def set_width(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})


FIRST_STATE = "all closed"


def operation(page: Page, name: str) -> Locator:
    return page.locator(f".opblock[id$='-{name}']")


def open_operation(page: Page) -> None:
    posting = operation(page, "start_run")
    posting.locator(".opblock-summary-control").click()
    expect(posting.get_by_role("tab", name="Schema").first).to_be_visible()


def show_schemas(page: Page) -> None:
    """Show the schemas of the request and of one response; the others have the same parts."""
    for tab in operation(page, "start_run").get_by_role("tab", name="Schema").all()[:2]:
        tab.click()
    expect(operation(page, "start_run").locator(".json-schema-2020-12").first).to_be_visible()


def try_it_out(page: Page) -> None:
    posting = operation(page, "start_run")
    posting.get_by_role("button", name="Try it out").click()
    for tab in posting.get_by_role("tab", name="Value").all()[:2]:
        tab.click()
    expect(posting.get_by_role("textbox", name="Request body")).to_be_editable()


def send_too_little(page: Page) -> None:
    operation(page, "start_run").locator(".opblock-summary-control").click()
    one = operation(page, "show_run")
    one.locator(".opblock-summary-control").click()
    one.get_by_role("button", name="Try it out").click()
    one.get_by_role("button", name="Execute").click()
    expect(one.locator(".validation-errors")).to_be_visible()


def send(page: Page) -> None:
    operation(page, "show_run").locator(".opblock-summary-control").click()
    listing = operation(page, "list_employees")
    listing.locator(".opblock-summary-control").click()
    listing.get_by_role("button", name="Try it out").click()
    listing.get_by_role("button", name="Execute").click()
    expect(listing.locator(".live-responses-table .response-col_status").last).to_contain_text(
        "200"
    )


def open_models(page: Page) -> None:
    operation(page, "list_employees").locator(".opblock-summary-control").click()
    page.get_by_role("button", name="Schemas").click()
    for button in page.locator("section.models").get_by_role("button", name="Expand all").all()[:3]:
        button.click()
    expect(page.locator("section.models .json-schema-2020-12-property").first).to_be_visible()


def ask_for_a_token(page: Page) -> None:
    page.get_by_role("button", name="Authorize").click()
    expect(page.get_by_role("textbox", name="Token")).to_be_visible()


API_STATES: dict[str, Callable[[Page], None]] = {
    FIRST_STATE: lambda page: None,
    "opened": open_operation,
    "schemas": show_schemas,
    "tried out": try_it_out,
    "too little sent": send_too_little,
    "answered": send,
    "all schemas": open_models,
    "logging in": ask_for_a_token,
}
CHECKED_STATES = take_sample(list(API_STATES), 2, "states of the page of the API")
"""The states to check; others are only steps to them."""
