"""Pages show everything from models, people and records as text: none of it runs, loads anything or
stays hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from unicodedata import category
from urllib.parse import urlencode, urlsplit

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Route, expect

from agents.accounts.models import ApiToken, AuditEntry
from agents.runs.models import Run
from agents.web.text.safe_text import replace_hidden_characters
from tests.hostile import packed
from tests.hostile.world import IN_ALL, HostileWorld, make_hostile_world
from tests.journeys.office import Office
from tests.journeys.visitor import Visit, Visitor
from tests.model_server import Call, ModelServer, Response
from tests.workshop import asking, call

pytestmark = pytest.mark.once

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

# Elements that no text may bring into a page. Only Markdown may link to other sites, without a
# referrer.
INJECTED = """() => ({
  hacked: window.hacked ?? null,
  elements: [...document.querySelectorAll(
    "img, svg:not(.icon, .icons, .chart, .timeline svg), iframe, object, embed, style, base, video, " +
    "meta[http-equiv], template:not([data-typed-values], [data-toast])")]
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
    """Return an office in which everything has a hostile name, and the model is hostile too."""
    workshop = office.workshop
    workshop.connect(model.url)
    model.title = Response(text=f"Ti{HIDDEN}tle {EVIL[1]}"[:80])
    workshop.organization.name = TEXT[:120]
    workshop.organization.save()
    workshop.employee.name, workshop.employee.job_title = f"Da{HIDDEN}{EVIL[1]}"[:80], EVIL[0]
    workshop.employee.example_tasks = [TEXT]
    workshop.employee.save()
    record = workshop.record(
        name=f"{HIDDEN}{EVIL[1]}", notes=TEXT, category=EVIL[0][:60], email=EVIL[2]
    )
    change = {"record_id": str(record.pk), "changes": {"notes": TEXT, "phone": EVIL[2]}}
    model.enqueue(
        Response(
            text=TEXT,
            calls=(
                Call("data.searchRecords", {"limit": 5}),
                Call("data.updateRecord", change),
                Call("data.bulkDelete", {"record_ids": [str(record.pk)]}),
                Call(EVIL[1], {EVIL[0]: TEXT}),
            ),
        ),
        Response(text=f"# {TEXT}\n\n{EVIL[6]}\n\n<div onclick=window.hacked=1>{EVIL[3]}</div>"),
    )
    return office


def test_hostile_text_does_not_run_or_stay_hidden_on_any_page(
    hostile: Office, visit: Visit
) -> None:
    visitor = visit("approver")
    visitor.page.goto("/")
    assert_tame(visitor)
    run_id = visitor.start("Da", TEXT)
    update, deletion = hostile.await_cards(run_id, 2)
    expect(visitor.open_cards).to_have_count(2)
    expect(visitor.page.locator(".status-rejected")).to_have_count(1)
    assert_tokens(visitor, ".model-text .markdown")
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
    assert_tokens(visitor, f"#card-{update.pk} .decision")
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
    """Check that each card's own page shows hidden characters and marks the employee's words as not
    verified."""
    for card in office.workshop.cards(Run.objects.get(pk=run_id)):
        visitor.page.goto(f"/approvals/{card.pk}/")
        assert_tokens(visitor, f"#card-{card.pk} .facts")
        assert_tokens(visitor, f"#card-{card.pk} .effect")
        expect(visitor.card(card.pk).locator(".employee-words")).to_contain_text("not verified")
        assert "evil.example" not in visitor.card(card.pk).locator(".employee-words").inner_text()


def test_a_page_without_scripts_shows_hostile_text_escaped(hostile: Office, visit: Visit) -> None:
    visitor = visit("approver", scripts=False)
    run_id = visitor.start("Da", TEXT)
    (card, _) = hostile.await_cards(run_id, 2)
    visitor.page.goto(f"/approvals/{card.pk}/")
    html = visitor.page.content()
    assert "<script>" not in html
    assert "onerror=window" not in html.replace("&lt;img src=x onerror=window", "")
    assert_tokens(visitor, f"#card-{card.pk} .facts")


def test_a_long_value_shows_its_length_and_disables_a_destructive_approve(
    office: Office, visit: Visit
) -> None:
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


# Pages in a real browser, with every hostile string in every field

HOST = "http://gadget.localhost"
LIST_PAGES = (
    "/", "/employees/", "/runs/", "/approvals/", "/approvals/?history=1", "/records/", "/drafts/", "/audit/", "/users/",
    "/tools/", "/oversight/", "/simulator/", "/grants/", "/grants/?ended=1", "/approvals/who/?tool=data.updateRecord",
)  # fmt: skip
HIDDEN_NOW = r"""() => {
  const categories = String.raw`\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}`;
  const fillers = String.raw`\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0`;
  const selectors = String.raw`\ufe00-\ufe0d\u{e0100}-\u{e01ef}`;
  const hidden = new RegExp(`(?![\n\t])[${categories}${fillers}${selectors}]`, "gu");
  const joiners = /(?<=\p{Extended_Pictographic}\ufe0f?)\u200d(?=\p{Extended_Pictographic})/gu;
  const text = (document.body.innerText + document.title).replace(joiners, "");
  const found = text.match(hidden) ?? [];
  return [...new Set(found)].map((one) => one.codePointAt(0).toString(16));
}"""


class ServedPage:
    """A browser page whose requests this process answers, with Django's client and the static
    files."""

    def __init__(self, context: BrowserContext, client: Client) -> None:
        self._client = client
        self.complaints: list[str] = []
        self.page = context.new_page()
        context.route("**/*", self._answer)
        context.route_web_socket("**/*", lambda socket: None)
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", self._dismiss)

    def _answer(self, route: Route) -> None:
        address = urlsplit(route.request.url)
        if not route.request.url.startswith(f"{HOST}/"):
            self.complaints.append(f"request to {route.request.url}")
            route.abort()
        elif address.path.startswith(settings.STATIC_URL):
            found = finders.find(address.path.removeprefix(settings.STATIC_URL))
            route.fulfill(path=str(found)) if found else route.fulfill(status=404)
        else:
            response = self._client.get(
                f"{address.path}?{address.query}", headers={"host": "testserver"}
            )
            route.fulfill(
                status=response.status_code, headers=dict(response.headers), body=response.content
            )

    def _note(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    def _dismiss(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def assert_tame(self, path: str) -> None:
        self.page.goto(f"{HOST}{path}")
        assert self.page.evaluate("() => window.hacked ?? null") is None, path
        assert self.page.evaluate(HIDDEN_NOW) == [], path
        assert self.complaints == [], path


@pytest.fixture
def served(
    transactional_db: None, chromium: Browser
) -> Iterator[tuple[HostileWorld, Callable[[str], ServedPage]]]:
    made = make_hostile_world()
    made.world.users["root"] = User.objects.create_superuser("root")
    with ExitStack() as contexts:
        yield (
            made,
            lambda name: ServedPage(
                contexts.enter_context(chromium.new_context()), made.world.client(name)
            ),
        )


def test_no_page_runs_or_hides_a_hostile_string(
    served: tuple[HostileWorld, Callable[[str], ServedPage]],
) -> None:
    made, opened = served
    browser = opened("admin")
    in_all = len(made.words.longest()) + len(made.words.of(IN_ALL, "\n"))
    pages = [f"/records/{record.pk}/" for record in made.records[:in_all]]
    pages += [f"/runs/{run.pk}/" for run in made.runs[::18]]
    pages += [f"/runs/{call.run_id}/calls/{call.pk}/" for call in made.calls[::36]]
    pages += [f"/approvals/{card.pk}/" for card in made.cards[1::90]]
    pages += [f"/employees/{made.employees[3].pk}/", f"/drafts/{made.drafts[3].pk}/"]
    for path in (*LIST_PAGES, *pages):
        browser.assert_tame(path)


def test_no_admin_page_runs_or_hides_a_hostile_string(
    served: tuple[HostileWorld, Callable[[str], ServedPage]],
) -> None:
    """The admin's policy allows inline code, so only escaping keeps these strings from running."""
    made, opened = served
    browser = opened("root")
    rows = (
        made.runs[1],
        made.calls[1],
        made.cards[1],
        made.employees[5],
        made.records[5],
        made.drafts[5],
    )
    for model in (*(row._meta for row in rows), AuditEntry._meta, ApiToken._meta):
        browser.assert_tame(reverse(f"admin:{model.app_label}_{model.model_name}_changelist"))
    for row in rows[:-1]:
        browser.assert_tame(
            reverse(f"admin:{row._meta.label_lower.replace('.', '_')}_change", args=[row.pk])
        )
    browser.assert_tame(reverse("admin:records_draft_delete", args=[made.drafts[5].pk]))
    for text in packed(1_000)[::6]:
        browser.assert_tame(f"/admin/records/record/?{urlencode({'q': text})}")


# The server, and a page with streaming text, replace the same hidden characters with tokens

EACH = ("\ufe0f", "\ufe0e", "\ufe0f\u20e3")
"""The variation selectors that follow each character, in turn."""
MARKS_OF_THE_PAGE = r"""async ([source, each]) => {
  const { visible } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
  const unassigned = /\p{Cn}/u;
  const marks = Array.from({ length: 0x110000 }, (_, code) => {
    const char = String.fromCodePoint(code);
    const shown = visible(each.map((behind) => char + behind).join(" "));
    return unassigned.test(char) ? "-" : shown.split("⟦U+").length - 1;
  });
  return marks.join("");
}"""
IN_PIECES = r"""async (source) => {
  const { visible } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
  return [visible("\ufe0f", "I ❤"), visible("\ufe0f", "I"), visible("a\r\nb"), visible("\u0378\ufe0f")];
}"""


def count_server_marks() -> str:
    """Count the tokens that replace each character and its followers; `-` for unassigned
    characters."""
    return "".join(
        "-"
        if category(char) == "Cn"
        else str(replace_hidden_characters(" ".join(char + behind for behind in EACH)).count("⟦U+"))
        for char in map(chr, range(0x110000))
    )


def test_a_page_marks_the_same_characters_as_the_server(chromium: Browser) -> None:
    """Compare the characters that both know: their versions of Unicode may differ."""
    source = (settings.BASE_DIR / "static/js/page/visible.js").read_text()
    with chromium.new_context() as context:
        page = context.new_page()
        ours, theirs = count_server_marks(), page.evaluate(MARKS_OF_THE_PAGE, [source, EACH])
        assert len(ours) == len(theirs)
        assert set(ours) == set("-0236")
        pairs = enumerate(zip(ours, theirs, strict=True))
        assert [f"U+{code:04X}" for code, pair in pairs if "-" not in pair and len(set(pair)) > 1][
            :20
        ] == []
        assert page.evaluate(IN_PIECES, source) == [
            "\ufe0f",
            "⟦U+FE0F⟧",
            "a\nb",
            "⟦U+0378⟧⟦U+FE0F⟧",
        ]
