"""The start page in a browser: tasks are assigned by keyboard or without scripts, and sections
refresh."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from agents.employees.models import Employee
from agents.runs.models import Run
from tests.awaiting import await_that
from tests.journeys.office import Office, load_run
from tests.journeys.visitor import Visit
from tests.workshop import asking, call

pytestmark = pytest.mark.once
EXAMPLES = ["Say hello", "Say goodbye"]


def hire_zoe(office: Office) -> Employee:
    """Create a second employee, with example tasks."""
    colleague = office.workshop.employee
    return Employee.objects.create(
        organization=colleague.organization,
        provider=colleague.provider,
        name="Zoe",
        example_tasks=EXAMPLES,
    )


@pytest.mark.every_commit
def test_a_task_can_be_assigned_with_the_keyboard_alone(office: Office, visit: Visit) -> None:
    hire_zoe(office)
    office.workshop.play(answer="Hello.")
    visitor = visit("operator")
    visitor.page.goto("/")
    expect(visitor.page.get_by_label("Task", exact=True)).to_be_focused()
    people = visitor.page.get_by_role("radio")
    expect(people.first).to_be_checked()
    people.first.focus()
    visitor.page.keyboard.press("ArrowDown")
    expect(visitor.page.get_by_role("radio", name=re.compile("Zoe"))).to_be_checked()
    visitor.page.keyboard.press("Tab")
    expect(visitor.page.get_by_role("link", name=EXAMPLES[0])).to_be_focused()
    visitor.page.keyboard.press("Enter")
    expect(visitor.page.get_by_label("Task", exact=True)).to_have_value(EXAMPLES[0])
    expect(visitor.page.get_by_role("button", name="Start", exact=True)).to_be_focused()
    visitor.page.keyboard.press("Enter")
    run = load_run(visitor.run_id())
    assert (run.employee.name, run.task) == ("Zoe", EXAMPLES[0])


def test_one_shortcut_starts_a_typed_task(office: Office, visit: Visit) -> None:
    office.workshop.play(answer="Hello.")
    visitor = visit("operator")
    visitor.page.goto("/")
    visitor.page.keyboard.type("Say hello")
    visitor.page.keyboard.press("Control+Enter")
    assert load_run(visitor.run_id()).task == "Say hello"


def test_focusing_the_task_field_does_not_scroll_the_page_or_move_links(
    office: Office, visit: Visit
) -> None:
    visitor = visit("operator")
    visitor.page.set_viewport_size({"width": 360, "height": 400})
    visitor.page.goto("/")
    expect(visitor.page.get_by_label("Task", exact=True)).to_be_focused()
    assert visitor.page.evaluate("scrollY") == 0
    visitor.page.goto("/?again=1#waiting")
    expect(visitor.page.get_by_label("Task", exact=True)).not_to_be_focused()


def test_only_the_chosen_employees_examples_are_shown_even_without_scripts(
    office: Office, visit: Visit
) -> None:
    zoe = hire_zoe(office)
    visitor = visit("operator", scripts=False)
    visitor.choose(office.workshop.employee.name)
    expect(visitor.page.locator("[data-example]:visible")).to_have_count(0)
    visitor.choose("Zoe")
    expect(visitor.page.locator("[data-example]:visible")).to_have_count(2)
    visitor.page.get_by_role("link", name=EXAMPLES[1]).click()
    expect(visitor.page.get_by_label("Task", exact=True)).to_have_value(EXAMPLES[1])
    expect(visitor.page.locator(f"#employee-{zoe.pk}")).to_be_checked()
    office.workshop.play(answer="Goodbye.")
    visitor.page.get_by_role("button", name="Start", exact=True).click()
    assert load_run(visitor.run_id()).task == EXAMPLES[1]


def test_pressing_start_twice_starts_one_run(office: Office, visit: Visit) -> None:
    office.workshop.play(answer="Once.")
    visitor = visit("operator")
    visitor.choose("Dana")
    visitor.page.locator("textarea[name=task]").fill("Do it once")
    visitor.page.get_by_role("button", name="Start", exact=True).dblclick(no_wait_after=True)
    office.await_end(visitor.run_id())
    assert Run.objects.count() == 1


def test_sections_refresh_except_the_one_with_the_focus(office: Office, visit: Visit) -> None:
    record = office.workshop.record()
    office.workshop.play(
        asking(call("data.updateRecord", record_id=str(record.pk), changes={"score": 5}))
    )
    visitor = visit("approver")
    visitor.page.goto("/")
    visitor.page.locator("textarea[name=task]").fill("Half a thou")
    visitor.page.locator("textarea[name=task]").focus()
    expect(visitor.page.locator("#guide [aria-current=step] h3")).to_have_text("Assign a task")
    run = office.submit("Set the score")
    (card,) = office.await_cards(run.pk)
    expect(visitor.page.locator("#waiting")).to_contain_text("Update record Acme Corp")
    expect(visitor.page.locator("#at-work")).to_contain_text("Set the score")
    expect(visitor.page.locator("#guide [aria-current=step] h3")).to_have_text("Decide a card")
    expect(visitor.page.locator("[data-announcer]")).to_contain_text("approval needed")
    expect(visitor.page.locator("textarea[name=task]")).to_be_focused()
    expect(visitor.page.locator("textarea[name=task]")).to_have_value("Half a thou")

    link = visitor.page.locator("#waiting a").first
    link.focus()
    office.workshop.deny(card)
    expect(visitor.page.locator("#recent")).to_contain_text("Set the score")
    expect(link).to_be_focused()
    visitor.page.locator("textarea[name=task]").focus()
    expect(visitor.page.locator("#waiting")).to_contain_text("all caught up.")


def test_a_refresh_corrects_a_link_even_if_its_text_stays_the_same(
    office: Office, visit: Visit
) -> None:
    run = office.submit("Look")
    office.await_end(run.pk)
    visitor = visit("viewer")
    visitor.page.goto("/")
    ended = visitor.page.locator("#recent a").first
    ended.evaluate("(link) => link.setAttribute('href', '/runs/0/')")
    visitor.page.evaluate(
        "document.dispatchEvent(new CustomEvent('inbox-changed', { detail: { pending: 0 } }))"
    )
    expect(ended).to_have_attribute("href", f"/runs/{run.pk}/")


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_the_page_never_scrolls_sideways(office: Office, visit: Visit, width: int) -> None:
    colleague = hire_zoe(office)
    Employee.objects.filter(pk=colleague.pk).update(
        name="N" * 80, job_title="J" * 120, example_tasks=["x" * 900]
    )
    office.workshop.play(answer="Done.")
    office.await_end(office.submit("y" * 5000).pk)
    visitor = visit("operator")
    visitor.page.set_viewport_size({"width": width, "height": 800})
    for path in ("/", f"/?employee={colleague.pk}", "/runs/"):
        visitor.page.goto(path)
        await_that(
            lambda: visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth"),
            f"{path} fits into {width} px",
        )
