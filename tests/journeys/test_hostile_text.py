"""Whatever models, people and records write, a page shows it as text: nothing runs, nothing loads, nothing hides."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from agents.models import Run
from tests.engine.workshop import asking, call
from tests.journeys.office import Office
from tests.journeys.visitor import Visitor
from tests.model_server import Answer, Call, ModelServer

pytestmark = pytest.mark.once

Visit = Callable[..., Visitor]

HIDDEN = "Acme\u202eproC\u200b\u0007 \u2066x\u2069 \ufeff"
TOKENS = ("⟦U+202E⟧", "⟦U+200B⟧", "⟦U+2066⟧", "⟦U+FEFF⟧")
EVIL = (
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "\"'><svg onload=window.hacked=1>",
    "</textarea></title></style><iframe srcdoc='<script>parent.hacked=1</script>'></iframe>",
    "<a href=javascript:window.hacked=1 autofocus onfocus=window.hacked=1>go</a>",
    "<style>*{display:none}</style><base href=https://evil.example/><meta http-equiv=refresh content=0>",
    "[click](javascript:window.hacked=1) ![pixel](https://evil.example/p.png) <form action=https://evil.example/>",
    "{{ 7*7 }}{% debug %}${7*7}`${window.hacked=1}`",
)
TEXT = f"{HIDDEN} {' '.join(EVIL)}"

# What nobody may bring into a page. Only markdown may link elsewhere, and such a link tells nothing of this page.
INJECTED = """() => ({
  hacked: window.hacked ?? null,
  elements: [...document.querySelectorAll(
    "img, svg:not(.icon, .icons, .chart, .strip svg), iframe, object, embed, style, base, video, meta[http-equiv]")]
    .map((element) => element.outerHTML),
  scripts: [...document.scripts].filter((script) => !script.src.startsWith(location.origin + "/static/")).length,
  handlers: [...document.querySelectorAll("*")].filter((element) =>
    [...element.attributes].some((attribute) => attribute.name.startsWith("on"))).map((element) => element.outerHTML),
  links: [...document.querySelectorAll("a[href]:not(.markdown a[href^='https://'][rel*='noreferrer']), form[action]")]
    .map((element) => element.href ?? element.action)
    .filter((address) => typeof address === "string" && !address.startsWith(location.origin + "/")),
})"""
HIDDEN_CHARACTERS = (
    "() => (document.body.innerText + document.title).match(/[\\u0000-\\u0008\\u200b-\\u200f\\u202a-\\u202e"
    "\\u2060-\\u2069\\ufeff]/gu)"
)


def assert_tame(visitor: Visitor) -> None:
    found = visitor.page.evaluate(INJECTED)
    assert found == {"hacked": None, "elements": [], "scripts": 0, "handlers": [], "links": []}
    assert visitor.page.evaluate(HIDDEN_CHARACTERS) is None


def assert_tokens(visitor: Visitor, selector: str) -> None:
    for token in TOKENS:
        expect(visitor.page.locator(selector).first).to_contain_text(token)


@pytest.fixture
def hostile(office: Office, model: ModelServer) -> Office:
    """An office where everything has a hostile name, with an employee on a model that is hostile too."""
    workshop = office.workshop
    workshop.connect(model.url)
    workshop.organization.name = TEXT[:120]
    workshop.organization.save()
    workshop.employee.name, workshop.employee.job_title = f"Da{HIDDEN}{EVIL[1]}"[:80], EVIL[0]
    workshop.employee.example_tasks = [TEXT]
    workshop.employee.save()
    record = workshop.record(name=f"{HIDDEN}{EVIL[1]}", notes=TEXT, category=EVIL[0][:60], email=EVIL[2])
    change = {"record_id": str(record.pk), "changes": {"notes": TEXT, "phone": EVIL[2]}}
    model.enqueue(
        Answer(
            text=TEXT,
            calls=(
                Call("data.searchRecords", {"limit": 5}),
                Call("data.updateRecord", change),
                Call("data.bulkDelete", {"record_ids": [str(record.pk)]}),
                Call(EVIL[1], {EVIL[0]: TEXT}),
            ),
        ),
        Answer(text=f"# {TEXT}\n\n{EVIL[6]}\n\n<div onclick=window.hacked=1>{EVIL[3]}</div>"),
    )
    return office


def test_nothing_runs_and_nothing_hides_on_any_page(hostile: Office, visit: Visit) -> None:
    visitor = visit("approver")
    visitor.page.goto("/")
    assert_tame(visitor)
    run_id = visitor.start("Da", TEXT)
    update, deletion = hostile.await_cards(run_id, 2)
    expect(visitor.open_cards).to_have_count(2)
    expect(visitor.page.locator(".status-rejected")).to_have_count(1)
    assert_tokens(visitor, ".says .markdown")
    assert_tokens(visitor, "h1")
    assert_tokens(visitor, f"#card-{deletion.pk} .sentence")
    assert_tame(visitor)
    for address in (
        "/",
        "/runs/",
        "/approvals/",
        f"/approvals/{update.pk}/",
        f"/approvals/{deletion.pk}/",
        "/employees/",
    ):
        visitor.page.goto(address)
        assert_tame(visitor)
    assert_tokens_in_cards(visitor, hostile, run_id)

    visitor.open_run(run_id)
    visitor.deny(visitor.card(update.pk), TEXT)
    expect(visitor.card(update.pk)).to_contain_text("Denied by")
    assert_tokens(visitor, f"#card-{update.pk} .verdict")
    hostile.workshop.deny(deletion, TEXT)
    hostile.await_end(run_id)
    expect(visitor.answer).to_contain_text("⟦U+202E⟧")
    assert_tame(visitor)
    visitor.assert_panel_is_whole(run_id)
    for address in (
        f"/runs/{run_id}/",
        "/runs/?q=%3Cscript%3Ewindow.hacked%3D1%3C%2Fscript%3E",
        "/approvals/?history=1",
    ):
        visitor.page.goto(address)
        assert_tame(visitor)


def assert_tokens_in_cards(visitor: Visitor, office: Office, run_id: int) -> None:
    """On its own page each card shows what hides in its target, its values and its employee's words."""
    for card in office.workshop.cards(Run.objects.get(pk=run_id)):
        visitor.page.goto(f"/approvals/{card.pk}/")
        assert_tokens(visitor, f"#card-{card.pk} .facts")
        assert_tokens(visitor, f"#card-{card.pk} .effect")
        expect(visitor.card(card.pk).locator(".words")).to_contain_text("not verified")
        assert "evil.example" not in visitor.card(card.pk).locator(".words").inner_text()


def test_a_page_without_scripts_is_just_as_tame(hostile: Office, visit: Visit) -> None:
    visitor = visit("approver", scripts=False)
    run_id = visitor.start("Da", TEXT)
    (card, _) = hostile.await_cards(run_id, 2)
    visitor.page.goto(f"/approvals/{card.pk}/")
    html = visitor.page.content()
    assert "<script>" not in html
    assert "onerror=window" not in html.replace("&lt;img src=x onerror=window", "")
    assert_tokens(visitor, f"#card-{card.pk} .facts")


def test_a_long_value_shows_its_length_and_keeps_a_destructive_approve_off(office: Office, visit: Visit) -> None:
    office.workshop.play(asking(call("probe.doom", name="A" * 150 + " and " + "B" * 100)))
    run = office.submit()
    (card,) = office.await_cards(run.pk)
    visitor = visit("approver")
    visitor.open_run(run.pk)
    shown = visitor.card(card.pk)
    expect(shown.locator(".effect .clamp .length").first).to_contain_text("255 characters")
    shown.locator("[name=confirm]").fill("probe.doom")
    expect(shown.locator(".approve-button")).to_be_disabled()
    expect(shown.locator("[data-unread]")).to_be_visible()
    for clamp in shown.locator(".facts .clamp summary, .effect .clamp summary").all():
        expect(shown.locator(".approve-button")).to_be_disabled()
        clamp.click()
    expect(shown.locator(".approve-button")).to_be_enabled()
