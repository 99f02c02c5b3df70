"""`make screens`: pictures of the pages, taken from a Gadget that runs with the demo's data, into docs/screens/."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
django.setup()

from django.core.management import call_command  # noqa: E402
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright  # noqa: E402

from agents import runs  # noqa: E402
from agents.demo import building  # noqa: E402
from agents.demo.names import PASSWORD  # noqa: E402
from agents.models import Approval, ApprovalStatus, Employee, Membership, Run  # noqa: E402
from tests.browser import browser_path, launch_arguments  # noqa: E402
from tests.processes import Installation  # noqa: E402

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "screens"
PATIENCE_S = 60.0
LARGEST_PICTURE = 200_000
TASKS = (
    ("Dana", "Find EU companies that look inactive and set the two weakest to inactive"),
    ("Morgan", "Delete the leads of the 2019 spring fair"),
    ("Robin", "Give me an overview of our UK companies"),
)
LOOKS: tuple[tuple[str, ViewportSize, str], ...] = (
    ("1440-light", {"width": 1440, "height": 900}, "light"),
    ("1440-dark", {"width": 1440, "height": 900}, "dark"),
    ("360-light", {"width": 360, "height": 740}, "light"),
)


def main() -> None:
    """Takes every picture anew; AssertionError if the demo does not get as far as its cards."""
    call_command("migrate", verbosity=0)
    building.build()
    path = browser_path()
    with Installation(timing_scale=1.0) as site:
        site.start_all()
        started = [_start(name, task) for name, task in TASKS]
        _await(lambda: _all_settled(started), "every card of the demo waits")
        FOLDER.mkdir(parents=True, exist_ok=True)
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=launch_arguments())
            for look in LOOKS:
                _take_all(browser, site.url, started[0], look)
            browser.close()


def _start(employee: str, task: str) -> Run:
    member = Membership.objects.get(organization__slug="acme-demo", user__username="operator")
    found = Employee.objects.get(organization=member.organization, name=employee)
    return runs.submit(member, runs.Submission(employee_id=found.pk, task=task))[0]


def _all_settled(started: list[Run]) -> bool:
    waiting = Approval.objects.filter(run__in=started, status=ApprovalStatus.PENDING)
    return waiting.count() >= 3 and Run.objects.filter(pk=started[-1].pk, finished_at__isnull=False).exists()


def _await(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.1)


def _take_all(browser: Browser, url: str, run: Run, look: tuple[str, ViewportSize, str]) -> None:
    name, size, scheme = look
    context = browser.new_context(
        base_url=url, viewport=size, color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce"
    )
    page = context.new_page()
    _take(page, "/login/", f"login-{name}")
    page.get_by_label("Username").fill("approver")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{url}/")
    pages = {"/": "start", "/runs/": "runs", f"/runs/{run.pk}/": "run", "/approvals/": "approvals"}
    pages |= {"/employees/": "employees", f"/employees/{run.employee_id}/": "employee"}
    pages |= {"/tools/": "tools", "/users/": "users", "/records/": "records", "/drafts/": "drafts"}
    for path, title in pages.items():
        _take(page, path, f"{title}-{name}")
    context.close()


def _take(page: Page, path: str, name: str) -> None:
    """What the window shows of the page, once everything that it asked for has come."""
    answer = page.goto(path, wait_until="load")
    assert answer is not None
    assert answer.ok, f"{path}: {answer.status}"
    page.evaluate("document.fonts.ready.then(() => true)")
    picture = page.screenshot(animations="disabled")
    assert len(picture) <= LARGEST_PICTURE, f"{name} has {len(picture)} bytes"
    (FOLDER / f"{name}.png").write_bytes(picture)
    sys.stdout.write(f"{name}.png  {len(picture) // 1000} kB\n")


if __name__ == "__main__":
    main()
