"""A refused form explains the reason, keeps the typed values, and changes nothing."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from agents.runs.models import Run
from tests.journeys.office import Office
from tests.journeys.visitor import Visit, Visitor

pytestmark = pytest.mark.once


def submit_task(visitor: Visitor, task: str) -> None:
    """Send the start form with this task, without the checks of the browser."""
    visitor.page.goto("/")
    field = visitor.page.locator("textarea[name=task]")
    field.evaluate("(field) => field.form.toggleAttribute('novalidate', true)")
    field.fill(task)
    visitor.page.get_by_role("button", name="Start", exact=True).click()


@pytest.mark.parametrize(
    ("task", "why"),
    [
        ("", "Describe the task."),
        (" \n ", "Describe the task."),
        ("x" * 100_000, "Task has 100,000 characters; at most 20,000 are allowed."),
    ],
    ids=["empty", "blank", "over-long"],
)
def test_an_invalid_task_is_refused_with_an_explanation(
    office: Office, visit: Visit, task: str, why: str
) -> None:
    visitor = visit("operator")
    submit_task(visitor, task)
    expect(visitor.page.get_by_role("alert")).to_have_text(why)
    assert visitor.page.locator("textarea[name=task]").input_value() == task
    assert not Run.objects.exists()


@pytest.mark.parametrize("path", ["/", "/runs/{run}/"])
def test_a_text_that_is_too_long_is_counted_and_kept(
    office: Office, visit: Visit, path: str
) -> None:
    office.workshop.play()
    run = office.submit()
    office.await_end(run.pk)
    visitor = visit("operator")
    visitor.page.goto(path.format(run=run.pk))
    field = visitor.page.locator("textarea[data-max-length]")
    note = visitor.page.locator("[data-length]")
    field.fill("x" * 100)
    expect(note).to_be_hidden()
    field.fill("x" * 20_345)
    expect(note).to_have_text("20,345 of 20,000 characters: 345 too many.")
    visitor.page.locator("form:has([data-max-length]) button[type=submit]").click()
    assert "345" in field.evaluate("(field) => field.validationMessage")
    assert len(field.input_value()) == 20_345
    field.fill("x" * 20_000)
    expect(note).to_have_text("20,000 of 20,000 characters")
    assert field.evaluate("(field) => field.checkValidity()")


def test_an_empty_message_is_refused_with_an_explanation_on_the_run_page(
    office: Office, visit: Visit
) -> None:
    office.workshop.play()
    run = office.submit()
    office.await_end(run.pk)
    visitor = visit("operator")
    visitor.open_run(run.pk)
    visitor.page.get_by_label("Message Dana").fill("  ")
    visitor.page.get_by_role("button", name="Send").click()
    expect(visitor.page.get_by_role("alert")).to_contain_text("Enter a message.")
    expect(visitor.answer).to_have_text("Done.")
    assert visitor.page.url == f"{office.url}/runs/{run.pk}/"
    visitor.page.reload()
    expect(visitor.page.get_by_role("alert")).to_have_count(0)


def test_a_newly_inactive_employee_is_reported_by_name(office: Office, visit: Visit) -> None:
    visitor = visit("operator")
    visitor.choose("Dana")
    office.workshop.employee.is_active = False
    office.workshop.employee.save()
    visitor.page.locator("textarea[name=task]").fill("Do the work")
    visitor.page.get_by_role("button", name="Start", exact=True).click()
    expect(visitor.page.get_by_role("alert")).to_have_text("Dana is not active.")
    assert not Run.objects.exists()


def test_an_unknown_employee_is_reported(office: Office, visit: Visit) -> None:
    visitor = visit("operator")
    visitor.choose("Dana")
    visitor.page.locator("input[name=employee]:checked").evaluate(
        "(one) => { one.value = '987654'; }"
    )
    visitor.page.locator("textarea[name=task]").fill("Do the work")
    visitor.page.get_by_role("button", name="Start", exact=True).click()
    expect(visitor.page.get_by_role("alert")).to_have_text("There is no employee 987654.")
    assert not Run.objects.exists()


def test_a_failed_login_does_not_reveal_which_part_is_wrong(office: Office, visit: Visit) -> None:
    visitor = visit()
    visitor.page.goto("/runs/")
    assert visitor.page.url.startswith(f"{office.url}/login/")
    visitor.page.get_by_label("Username").fill("acme-approver")
    visitor.page.get_by_label("Password").fill("wrong")
    visitor.page.get_by_role("button", name="Log in").click()
    expect(visitor.page.get_by_role("alert")).to_contain_text("The username or password is wrong.")
    visitor.page.get_by_label("Password").fill("secret-enough")
    visitor.page.get_by_role("button", name="Log in").click()
    expect(visitor.page.get_by_role("heading", name="Runs")).to_be_visible()


def test_an_unknown_run_is_not_found(office: Office, visit: Visit) -> None:
    visitor = visit("operator")
    visitor.page.goto("/runs/987654/")
    expect(visitor.page.get_by_role("heading", name="Page not found")).to_be_visible()
