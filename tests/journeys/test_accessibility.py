"""Every page, light and dark, is free of what axe knows to keep people out (WCAG 2.2 A and AA)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from agents import invitations, members
from agents.urls import urlpatterns
from tests.engine.workshop import asking, call
from tests.journeys.office import Office
from tests.journeys.visitor import Visitor
from tests.web.test_page_access import READ
from tools.records.models import Draft

pytestmark = pytest.mark.once

AXE = Axe().axe_script
RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]},
    "resultTypes": ["violations"],
}
VIOLATIONS = "async (rules) => (await axe.run(document, rules)).violations"
# Not pages: a fragment, an address that is not there, and what is downloaded.
PAGES = frozenset(READ) - {"card", "nothing", "audit-export", "records-export", "draft-download", "file-download"}
PAGES -= {"transcript-markdown", "transcript-json"}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def faults_of(page: Page, where: str, but: frozenset[str] = frozenset()) -> Iterator[str]:
    """What keeps somebody out of the page as it is now, in the light and in the dark, by all rules `but` these."""
    page.evaluate(AXE)
    rules = {**RULES, "rules": {rule: {"enabled": False} for rule in but}}
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        for violation in page.evaluate(VIOLATIONS, rules):
            for node in violation["nodes"][:3]:
                yield f"{where} ({scheme}): {violation['id']}: {node['target']}: {node['failureSummary'][:300]}"


@pytest.fixture
def places(office: Office) -> dict[str, str]:
    """An office in which something waits, something has ended and something was drafted; the addresses to look at."""
    record = office.workshop.record()
    update = call("data.updateRecord", record_id=str(record.pk), changes={"status": "inactive"})
    search = call("data.searchRecords", region="EU")
    office.workshop.play(asking(search, update, call("data.bulkDelete", record_ids=[str(record.pk)]), text="I look."))
    waiting = office.submit()
    card, _ = office.await_cards(waiting.pk, 2)
    office.workshop.play(asking(search), answer="# Done\n\n- one\n- two")
    ended = office.submit("Look again")
    office.await_end(ended.pk)
    known = {"run_id": waiting.pk, "approval_id": card.pk, "employee_id": office.workshop.employee.pk}
    draft = Draft.objects.create(organization=record.organization, kind="report", title="A report", body="# One\n\ntwo")
    known |= {"record_id": record.pk, "draft_id": draft.pk, "call_id": card.tool_call_id}
    _, secret = invitations.invite(office.member("admin"), invitations.Offer(role="viewer"))
    _, reset_secret = members.make_reset(office.member("admin"), office.member("viewer").pk)
    return {
        "a run that has ended": f"/runs/{ended.pk}/",
        "the inbox' history": "/approvals/?history=1",
        "login": "/login/",
        "an invitation": f"/join/{secret}/",
        "a new password": f"/new-password/{reset_secret}/",
        **{str(one.name): "/" + _filled(str(one.pattern), known) for one in urlpatterns if one.name in PAGES},
    }


def _filled(route: str, known: dict[str, int]) -> str:
    for name, value in known.items():
        route = route.replace(f"<int:{name}>", str(value))
    return route


def test_no_page_keeps_anybody_out(office: Office, visit: Callable[..., Visitor], places: dict[str, str]) -> None:
    faults: list[str] = []
    visitor = visit("admin")
    for name, path in places.items():
        assert "<" not in path, f"{name} needs a row of its own here"
        answer = visitor.page.goto(path)
        assert answer is not None
        assert answer.ok, f"{path}: {answer.status}"
        faults += faults_of(visitor.page, name)
    assert len(places) > len(PAGES)
    assert not faults, "\n".join(faults)
