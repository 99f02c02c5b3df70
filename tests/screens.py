"""`make screens`: take pictures of the pages of a Gadget that runs with the demo's data, and store
them in docs/screens/.

Git ignores pictures that the documentation does not show.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.screens_settings"
django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright  # noqa: E402

from agents.accounts.members import update_admin_access  # noqa: E402
from agents.accounts.models import Membership, Organization, Role  # noqa: E402
from agents.approvals import decisions  # noqa: E402
from agents.employees.models import Employee  # noqa: E402
from agents.runs import actions  # noqa: E402
from agents.runs.models import Approval, ApprovalStatus, Run, RunStatus, ToolCall  # noqa: E402
from gadget_site.demo import building  # noqa: E402
from gadget_site.demo.names import ORGANIZATION  # noqa: E402
from tests.browser import find_browser, launch_arguments  # noqa: E402
from tests.processes import Installation  # noqa: E402
from tests.tools.connections.api import Api  # noqa: E402
from tests.tools.connections.connecting import TIME_SERVER, connect_api, connect_program, take  # noqa: E402
from tests.workshop import Workshop  # noqa: E402
from tools.connections.models import Source  # noqa: E402
from tools.office.records.models import Draft, RecordChange  # noqa: E402

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "screens"
PATIENCE_S = 60.0
LARGEST_PICTURE = 200_000
LARGEST_FOLDER = 8_000_000
TASKS = (
    ("Dana", "Find EU companies that look inactive and set the two weakest to inactive"),
    ("Morgan", "Delete the leads of the 2019 spring fair"),
    ("Dana", "Qualify Ember & Oak Hospitality"),
    ("Morgan", "Archive the inactive APAC companies with a low score"),
    ("Robin", "Give me an overview of our UK companies"),
)
WAITING, APPROVED, DENIED, ENDED = 0, 2, 3, 4  # positions in TASKS, by the outcome of each task
LOOKS: tuple[tuple[str, ViewportSize, str], ...] = (
    ("1440-light", {"width": 1440, "height": 620}, "light"),
    ("1440-dark", {"width": 1440, "height": 620}, "dark"),
    ("768-light", {"width": 768, "height": 740}, "light"),
    ("360-light", {"width": 360, "height": 600}, "light"),
    ("360-dark", {"width": 360, "height": 600}, "dark"),
)
# Only these have a picture 360 px wide in the dark theme, so that the folder stays small.
IN_EVERY_LOOK = ("login", "start", "run", "approvals", "card", "records", "draft")
NEWCOMER = "newcomer"
# The pages of each person; names in braces are ids of rows that the demo's tasks create.
PAGES: dict[str, dict[str, str]] = {
    "": {"login": "/login/"},
    NEWCOMER: {"start-newcomer": "/"},
    "admin": {
        "audit": "/audit/",
        "import": "/records/import/",
        "users": "/users/",
        "files": "/files/",
        "schedules": "/schedules/",
        "password": "/account/password/",
        "stop": "/stop/",
        "sources": "/admin/connections/source/",
        "source": "/admin/connections/source/{source}/change/",
        "source-tools": "/admin/connections/source/{source}/tools/",
    },
    "approver": {
        "start": "/",
        "runs": "/runs/",
        "run": "/runs/{run}/",
        "call": "/runs/{ended}/calls/{call}/",
        "approvals": "/approvals/",
        "history": "/approvals/?history=1",
        "card": "/approvals/{card}/",
        "employees": "/employees/",
        "employee": "/employees/{employee}/",
        "tools": "/tools/",
        "records": "/records/",
        "record": "/records/{record}/",
        "drafts": "/drafts/",
        "draft": "/drafts/{draft}/",
    },
}


def main() -> None:
    """Take all pictures again, and replace the old ones.

    Raises:
        AssertionError: the demo's runs do not reach the expected state, a page fails to load, or
            the pictures are too large.
    """
    call_command("migrate", verbosity=0)
    building.build()
    path = find_browser()
    settings_of_pictures = {"DJANGO_SETTINGS_MODULE": os.environ["DJANGO_SETTINGS_MODULE"]}
    with Api() as api, Installation(timing_scale=1.0, variables=settings_of_pictures) as site:
        site.start_all()
        started = [_start(name, task) for name, task in TASKS]
        _await(lambda: _are_all_waiting(started), "every card of the demo waits")
        _decide(started)
        places = _places(started, _connect(api))
        sessions = {name: _session(name) for name in PAGES if name}
        FOLDER.mkdir(parents=True, exist_ok=True)
        for old in FOLDER.glob("*.png"):
            old.unlink()
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=launch_arguments())
            for look in LOOKS:
                _take_all(browser, Visit(site.url, sessions, places), look)
            browser.close()
    size = sum(picture.stat().st_size for picture in FOLDER.glob("*.png"))
    assert size <= LARGEST_FOLDER, f"the pictures have {size} bytes"


def _member(username: str) -> Membership:
    return Membership.objects.get(organization__slug=ORGANIZATION, user__username=username)


def _start(employee: str, task: str) -> Run:
    member = _member("operator")
    found = Employee.objects.get(organization=member.organization, name=employee)
    return actions.submit(member, actions.Submission(employee_id=found.pk, task=task))[0]


def _session(username: str) -> str:
    """Return a session cookie of this person. A person who does not exist yet becomes the admin of
    a new, empty organization."""
    user, is_new = User.objects.get_or_create(username=username)
    if is_new:
        fresh = Organization.objects.create(name="Borealis", slug="borealis")
        Membership.objects.create(organization=fresh, user=user, role=Role.ADMIN)
        update_admin_access(user)
    client = Client()
    client.force_login(user)
    return str(client.cookies[settings.SESSION_COOKIE_NAME].value)


def _are_all_waiting(started: list[Run]) -> bool:
    waiting = Run.objects.filter(pk__in=[run.pk for run in started], status=RunStatus.WAITING)
    return waiting.count() == len(started) - 1 and _has_ended(started[ENDED])


def _has_ended(run: Run) -> bool:
    return Run.objects.filter(pk=run.pk, finished_at__isnull=False).exists()


def _card(run: Run) -> Approval:
    return Approval.objects.filter(run=run, status=ApprovalStatus.PENDING).earliest("pk")


def _decide(started: list[Run]) -> None:
    """Approve one task's card and deny another's, so that there is a history."""
    approver = _member("approver")
    yes, no = _card(started[APPROVED]), _card(started[DENIED])
    decisions.approve(approver, yes.pk, decisions.Decision(digest=yes.digest))
    decisions.deny(
        approver, no.pk, decisions.Decision(digest=no.digest, reason="Not before the audit is over")
    )
    _await(
        lambda: _has_ended(started[APPROVED]) and _has_ended(started[DENIED]),
        "the decided runs have ended",
    )


def _await(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.1)


@dataclass(frozen=True)
class Visit:
    """The site's address, a session cookie for each person, and the paths of that person's pages by
    title."""

    url: str
    sessions: dict[str, str]
    places: dict[str, dict[str, str]]


def _connect(api: Api) -> Source:
    """Connect an MCP server, and an API with one operation that an employee may use; return the
    API's source."""
    admin = _member("admin")
    robin = Employee.objects.get(organization=admin.organization, name="Robin")
    there = Workshop(admin.organization, robin, {"admin": admin})
    crm = connect_api(there, api)
    take(crm, "crm.listContacts")
    connect_program(there, TIME_SERVER)
    return crm


def _places(started: list[Run], source: Source) -> dict[str, dict[str, str]]:
    """Return the addresses of PAGES with the ids filled in."""
    ended = started[ENDED]
    rows = {
        "run": started[WAITING].pk,
        "ended": ended.pk,
        "call": ToolCall.objects.filter(run=ended).earliest("pk").pk,
        "card": _card(started[WAITING]).pk,
        "employee": ended.employee_id,
        "record": RecordChange.objects.latest("pk").record_id,
        "source": source.pk,
        "draft": Draft.objects.filter(run_id=ended.pk).latest("pk").pk,
    }
    return {
        who: {title: path.format(**rows) for title, path in pages.items()}
        for who, pages in PAGES.items()
    }


def _take_all(browser: Browser, visit: Visit, look: tuple[str, ViewportSize, str]) -> None:
    name, size, scheme = look
    for who, pages in visit.places.items():
        context = browser.new_context(
            base_url=visit.url,
            viewport=size,
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
        )
        if who:
            cookie = {
                "name": settings.SESSION_COOKIE_NAME,
                "value": visit.sessions[who],
                "url": visit.url,
            }
            context.add_cookies([cookie])  # type: ignore[list-item]
        page = context.new_page()
        for title, path in pages.items():
            if name != "360-dark" or title in IN_EVERY_LOOK:
                _take(page, path, f"{title}-{name}")
        context.close()


def _take(page: Page, path: str, name: str) -> None:
    """Save a picture of the window once the page has loaded."""
    response = page.goto(path, wait_until="load")
    assert response is not None
    assert response.ok, f"{path}: {response.status}"
    page.evaluate("document.fonts.ready.then(() => true)")
    picture = page.screenshot(animations="disabled")
    assert len(picture) <= LARGEST_PICTURE, f"{name} has {len(picture)} bytes"
    (FOLDER / f"{name}.png").write_bytes(picture)
    sys.stdout.write(f"{name}.png  {len(picture) // 1000} kB\n")


if __name__ == "__main__":
    main()
