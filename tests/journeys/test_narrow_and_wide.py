"""In a browser: nothing is cut off without a visible sign, from a phone to a wide screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from agents.accounts.members import update_admin_access
from tests.features import feature
from tests.journeys.office import Office
from tests.journeys.visitor import Visit
from tests.workshop import asking, call
from tests.workshop.colleagues import ask, may_ask
from tools.office.records.models import Draft

pytestmark = pytest.mark.once

PLACES = 19
IN_SIGHT = """() => [...document.querySelectorAll(".places a")].filter((link) => {
  const box = link.getBoundingClientRect();
  const at = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  return box.x >= 0 && box.right <= innerWidth && link.contains(at);
}).length"""
IS_IN_VIEW = """(button) => {
  const box = button.getBoundingClientRect();
  const at = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  return box.top >= 0 && box.bottom <= innerHeight && button.contains(at);
}"""
RED_TEXTS = """(effect, red) => [...effect.querySelectorAll("*")].filter((one) => getComputedStyle(one).color === red)
  .flatMap((one) => [...one.childNodes]).filter((node) => node.nodeType === Node.TEXT_NODE && node.data.trim())
  .filter((node) => !node.parentElement.closest(".side")).map((node) => node.data.trim())"""
COLOR_OF_LOSS = """() => {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = "var(--destructive)";
  return getComputedStyle(probe).color;
}"""
EDGE = 14
"""The width of the shadow at the edge of a box, in pixels."""


@pytest.fixture(autouse=True)
def admin_access(office: Office) -> None:
    """Give the admin access to the configuration, so that the menu has every link."""
    update_admin_access(office.member("admin").user)


def open_page(visit: Visit, path: str, width: int, scripts: bool = True, height: int = 800) -> Page:
    page = visit("admin", scripts=scripts).page
    page.set_viewport_size({"width": width, "height": height})
    page.goto(path)
    return page


@pytest.mark.parametrize(("width", "height"), [(1024, 768), (1440, 620), (1440, 900)])
def test_every_menu_link_is_visible_at_1024_pixels_or_more(
    office: Office, visit: Visit, width: int, height: int
) -> None:
    page = open_page(visit, "/users/", width, height=height)
    assert page.evaluate(IN_SIGHT) == PLACES
    expect(page.get_by_role("button", name="Menu")).to_be_hidden()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
@pytest.mark.parametrize("width", [360, 1023])
def test_below_1024_pixels_a_button_opens_the_menu(
    office: Office, visit: Visit, width: int, scripts: bool
) -> None:
    page = open_page(visit, "/users/", width, scripts)
    menu, places = (
        page.get_by_role("button", name="Menu"),
        page.get_by_role("navigation", name="Main"),
    )
    expect(places).to_be_hidden()
    menu.focus()
    page.keyboard.press("Enter")
    expect(places).to_be_visible()
    expect(places.get_by_role("link")).to_have_count(PLACES)
    if scripts:
        assert page.evaluate(IN_SIGHT) == PLACES
    page.keyboard.press("Escape")
    expect(places).to_be_hidden()
    menu.click()
    places.get_by_role("link", name="Records").click()
    expect(page).to_have_url(f"{office.url}/records/")


@feature("The inbox", "The decision stays in view on a phone", "static/css/cards.css")
@pytest.mark.parametrize("path", ["/approvals/", "/approvals/{card}/", "/runs/{run}/"])
def test_the_decision_stays_in_view_on_a_phone(office: Office, visit: Visit, path: str) -> None:
    record = office.workshop.record(name="Acme Corp")
    changes = {"attributes": {f"field {number}": "word " * 5 for number in range(9)}}
    office.workshop.play(
        asking(call("data.updateRecord", record_id=str(record.pk), changes=changes))
    )
    (card,) = office.await_cards(office.submit().pk)
    page = open_page(visit, path.format(card=card.pk, run=card.run_id), 360, height=740)
    page.locator(f"#card-{card.pk} .sentence").scroll_into_view_if_needed()
    assert page.locator(f"#card-{card.pk}").evaluate("(card) => card.scrollHeight") > 740
    for control in (".approve-button", ".deny > summary", ".edit > summary"):
        assert page.locator(f"#card-{card.pk} {control}").evaluate(IS_IN_VIEW), control


def list_red(page: Page, path: str) -> list[str]:
    """Open a card's page, and list the red texts in its effect."""
    page.goto(path)
    texts: list[str] = page.locator("[data-card] .effect").evaluate(
        RED_TEXTS, page.evaluate(COLOR_OF_LOSS)
    )
    return texts


def test_only_lost_values_are_red_in_the_effect_of_a_card(office: Office, visit: Visit) -> None:
    regions = ["EU", "EU", "EU", "EU", "US"]  # the last two rows differ, so that a table is shown
    records = [
        office.workshop.record(name=f"Company {number}", region=each)
        for number, each in enumerate(regions)
    ]
    update = [{"status": "inactive"}, {"status": "inactive", "region": ""}]
    ids = [str(each.pk) for each in records]
    updates = [
        call("data.updateRecord", record_id=pk, changes=each)
        for pk, each in zip(ids, update, strict=False)
    ]
    deletions = [call("data.bulkDelete", record_ids=some) for some in (ids[2:3], ids[3:])]
    office.workshop.play(asking(*updates, *deletions))
    neutral, emptied, *losses = [
        f"/approvals/{card.pk}/" for card in office.await_cards(office.submit().pk, 4)
    ]
    page = open_page(visit, neutral, 1440)
    assert list_red(page, neutral) == []
    assert list_red(page, emptied) == ["EU", "removed"]
    for loss, name in zip(losses, ("Company 2", "Company 3"), strict=True):
        lost = list_red(page, loss)
        assert {"EU", "Software", "active", name} <= set(lost)
        assert not {"name", "region", "category", "status"} & set(lost), (
            "the names of the fields are not lost"
        )


def test_each_choice_of_a_question_is_a_separate_button(office: Office, visit: Visit) -> None:
    choices = [
        "Amber Castings plc",
        "Bluewater Market Ltd",
        "Leave it as it is until the audit is over",
    ]
    may_ask(office.workshop.employee)
    office.workshop.play(asking(ask("Which one?", choices=choices)))
    run = office.submit()
    (card,) = office.await_cards(run.pk)
    page = open_page(visit, f"/approvals/{card.pk}/", 768)
    buttons = [page.get_by_role("button", name=name) for name in choices]
    row = page.locator(".choices").bounding_box()
    assert row is not None
    for button in buttons:
        box = button.bounding_box()
        assert box is not None
        assert box["width"] < 0.7 * row["width"]
        looks = button.evaluate(
            "(one) => { const s = getComputedStyle(one); return [s.borderRadius, s.marginLeft]; }"
        )
        assert looks == [buttons[0].evaluate("(one) => getComputedStyle(one).borderRadius"), "0px"]
        assert " " not in looks[0], "all four corners are alike"
    office.workshop.cancel(run)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_a_wide_table_has_a_shadow_at_each_edge_where_it_is_cut_off(
    office: Office, visit: Visit, width: int, scheme: str
) -> None:
    body = "\n".join(
        [
            "| " + " | ".join(f"Column{n}" for n in range(20)) + " |",
            "|---" * 20 + "|",
            "| x " * 20 + "|",
        ]
    )
    draft = Draft.objects.create(
        organization=office.workshop.organization,
        kind="report",
        title="Wide",
        body=body,
        employee="Dana",
        run_id="1",
    )
    page = open_page(visit, f"/drafts/{draft.pk}/", width)
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    box = page.locator(".table-box")
    assert box.evaluate("(one) => one.scrollWidth > one.clientWidth + 100")
    box.evaluate(
        "(one) => one.querySelectorAll('th, td').forEach((cell) => (cell.style.color = 'transparent'))"
    )
    goes_on = picture_edges(page)
    box.evaluate("(one) => one.scrollTo(one.scrollWidth, 0)")
    at_end = picture_edges(page)
    assert goes_on["right"] != at_end["right"], "the shadow of the right edge is gone at the end"
    assert goes_on["left"] != at_end["left"], "and the left edge has one"


def picture_edges(page: Page) -> dict[str, bytes]:
    """Take pictures of both edges of the table."""
    box = page.locator(".table-box").bounding_box()
    assert box is not None
    top, height = box["y"] + 4, box["height"] - 8

    def strip(x: float) -> bytes:
        return page.screenshot(clip={"x": x, "y": top, "width": EDGE, "height": height})

    return {"left": strip(box["x"] + 2), "right": strip(box["x"] + box["width"] - EDGE - 2)}
