"""Text written by others is quoted in each heading, button, title, label and accessible name."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.template import engines
from django.utils import timezone

from agents.accounts.models import Organization
from agents.accounts.notice_facts import NoticeKind
from agents.employees.models import Employee, Grant, ToolRule
from agents.gateway.models import Ask, AskedEffect
from agents.insight.models import ToolFigures
from agents.notices.models import Channel, Notice
from agents.notices.texts import describe
from agents.policy.models import PolicyDraft
from agents.runs.models import Run, ToolCall
from agents.standing_grants.models import StandingGrant
from agents.triggers.models import Trigger
from agents.web.jinja_environment import JINJA
from tests.features import feature
from tests.hostile.bare_texts import NAME, SENTINEL, BareTexts, Sentinels
from tests.hostile.test_pages import every_page, followed
from tests.hostile.work import add_work
from tests.hostile.world import HostileWorld, fill
from tests.world import UPDATE, make_world
from tools.connections.models import Source, SourceKind, SourceTool
from tools.contract.outside_text import OutsideText
from tools.sources.mcp.definitions import Definition

pytestmark = [pytest.mark.django_db, pytest.mark.once]

TOOL = f"{NAME}.approved"
MOST_PAGES = 3
"""The maximum number of pages to read of each kind: the rows of a kind differ only in their
numbers."""


def make_world_of_sentinels() -> HostileWorld:
    """Fill every place with a sentinel, except the names that admins choose."""
    made = HostileWorld(make_world(), Sentinels(is_hostile=False))
    fill(made)
    for number, employee in enumerate(made.employees):
        employee.name, employee.job_title = f"Kim {number}", "Clerk"
    Employee.objects.bulk_update(made.employees, ["name", "job_title"])
    for number, user in enumerate(made.users):
        user.username = f"user{number}"
    User.objects.bulk_update(made.users, ["username"])
    add_work(made)
    PolicyDraft.objects.update(name="Stricter")
    name_by_others(made)
    return made


def name_by_others(made: HostileWorld) -> None:
    """Connect a source with a tool, and set every name that others chose to one that must always be
    quoted."""
    acme, text = made.world.acme, f"Gadget: approved {NAME}"
    source = Source.objects.create(
        organization=acme,
        kind=SourceKind.MCP_HTTP,
        name=NAME,
        title=text,
        address="https://crm.example/mcp",
        problem=text,
    )
    schema = {"type": "object", "properties": {"to": {"type": "string"}}}
    definition = Definition("approved", "approved", text, text, schema, None, {}, hash="a")
    SourceTool.objects.create(
        source=source, key="find", tool=TOOL, title=text, accepted_title=text,
        definition=definition.to_json(), hash=definition.hash, accepted_hash=definition.hash,
        inferred_level="write", level="write", is_chosen=True,
    )  # fmt: skip
    Organization.objects.filter(pk=acme.pk).update(tools_version=F("tools_version") + 1)
    Grant.objects.create(employee=made.world.employee, tool=TOOL)
    ToolRule.objects.create(
        organization=acme, tool=TOOL, stopped_by="user1", stopped_at=timezone.now()
    )
    StandingGrant.objects.update(tool=TOOL)
    ToolFigures.objects.create(organization=acme, tool=TOOL, day=timezone.now().date(), succeeded=7)
    calls = ToolCall.objects.filter(organization=acme)
    calls.filter(tool__contains=SENTINEL).update(tool=TOOL)
    calls.filter(tool__startswith="ask/").update(tool=f"ask/{NAME}.approved")
    Trigger.objects.update(task=text)
    Run.objects.filter(organization=acme).update(task=text)
    Ask.objects.update(action=f"{NAME}.approved", audience=text)
    for effect in AskedEffect.objects.all():
        effect.action, effect.key = f"{NAME}.approved", f"{text} {effect.pk}"
        effect.save()


@feature(
    "Pages",
    "Names and words of others stand quoted in headings, buttons, titles, labels and accessible names",
    "tools/contract/outside_text.py",
)
@pytest.mark.timeout(600)
def test_no_page_shows_text_written_by_others_as_its_own() -> None:
    made = make_world_of_sentinels()
    client, found = made.world.client("admin"), []
    told, named = 0, 0
    pages = every_page(made) | {
        "their tool": [f"/tools/{TOOL}/", f"/approvals/who/?tool={TOOL}"],
        "grant for it": [f"/grants/new/?tool={TOOL}&employee={made.world.employee.pk}"],
        "grants of others' tool": [f"/grants/?tool={TOOL}"],
    }
    for addresses in pages.values():
        for address in addresses[:MOST_PAGES]:
            for where, reading in followed(client, address, 1):
                told += SENTINEL in reading.html
                named += NAME in reading.html
                found += [f"{where}: {each}" for each in BareTexts(reading.html).found]
    assert min(told, named) > 30  # the pages do contain such texts
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("template", "is_bare"),
    [
        ("<h1>{{ name }}</h1>", True),
        ("<h1>{{ name|visible }}</h1>", True),
        ("<h1>{{ name|chip }}</h1>", False),
        ("<h1>{{ outside|visible }}</h1>", False),
        ("<button>Delete <b>{{ name|visible }}</b></button>", True),
        ("<button>Delete {{ name|chip }}</button>", False),
        ("<label>{{ name|tool_words(true) }}</label>", False),
        ("<label>{{ name|tool_words(false) }}</label>", True),
        ('<p aria-label="Card: {{ name|plain }}"></p>', True),
        ('<p aria-label="Card: {{ name|quote }}"></p>', False),
        ('<p aria-label="Card: {{ outside|plain }}"></p>', False),
        ("<title>{{ name|plain }}</title>", True),
        ("<title>{{ name|quote }}</title>", False),
        ("<p>{{ name|visible }}</p>", False),
    ],
)
def test_the_check_finds_unquoted_text_but_not_quoted_text(template: str, is_bare: bool) -> None:
    name = f"Gadget: approved {SENTINEL}"
    assert bool(find_bare(template, name)) == is_bare


@pytest.mark.parametrize(
    ("template", "is_bare"),
    [
        ("<p>{{ name|visible }}</p>", True),
        ("<dd>1.0, by {{ name|visible }}</dd>", True),
        ("<p>{{ name|chip }}</p>", False),
        ("<p>{{ outside|visible }}</p>", False),
        ("<p>Switched {{ name|quote }} on</p>", False),
        ("<blockquote>{{ name|visible_lines }}</blockquote>", False),
    ],
)
def test_the_check_finds_an_unquoted_name_in_any_element(template: str, is_bare: bool) -> None:
    assert bool(find_bare(template, f"Gadget: approved {NAME}")) == is_bare


def find_bare(template: str, name: str) -> list[str]:
    html = engines[JINJA].from_string(template).render({"name": name, "outside": OutsideText(name)})
    return BareTexts(html).found


@pytest.mark.parametrize(
    "kind", [NoticeKind.TRIGGER_REFUSED, NoticeKind.WEBHOOK_OFF, NoticeKind.CHANNEL_LOST]
)
def test_the_subject_of_a_notice_quotes_a_name_on_one_line(kind: NoticeKind) -> None:
    notice = Notice(kind=kind, detail=f"Gadget: approved {SENTINEL}\u202e\nBcc: x")
    subject = describe(notice, Channel()).sentence
    assert subject.endswith(f": “Gadget: approved {SENTINEL}⟦U+202E⟧ Bcc: x”")


def test_the_subject_of_a_cards_notice_quotes_the_name_of_a_tool_from_a_source() -> None:
    world = make_world()
    for tool, shown in ((f"bank.{SENTINEL}", f"“bank.{SENTINEL}”"), (UPDATE, "Update a record")):
        card = world.card()
        card.tool_call.tool = tool
        notice = Notice(organization=world.acme, kind=NoticeKind.CARD, approval=card, run=card.run)
        subject = describe(notice, Channel()).sentence
        assert subject == f"A decision is waiting: {shown}, asked by Dana"
