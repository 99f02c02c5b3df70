"""The frame around every page: the theme, the pages and keyboard shortcuts of each role, and the
search."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from jinja2 import nodes

from agents.accounts.models import Membership, Role
from agents.employees.models import Employee
from agents.employees.toolboxes import get_installed_toolbox
from agents.runs.models import RunStatus
from agents.urls import urlpatterns
from agents.web.frame import finding
from agents.web.jinja_environment import create_environment
from agents.web.views.pages import render_page
from gadget_site.folders import ASSETS_DIR
from tests.features import feature
from tests.web.test_access import READ
from tests.world import World
from tools.office.records.models import Record

pytestmark = pytest.mark.django_db

NOT_LISTED = {"/search/"}


def find_set_names(node: nodes.Node) -> list[str]:
    """List the name that this node of a template sets for the templates that extend it; empty if
    the node does not set a name."""
    if isinstance(node, nodes.Macro):
        return [node.name]
    target = node.target if isinstance(node, (nodes.Assign, nodes.AssignBlock)) else None
    return [target.name] if isinstance(target, nodes.Name) else []


def hits(client: Client, query: str) -> list[tuple[str, str]]:
    """Return the address and name of each hit."""
    html = client.get("/search/", {"q": query, "palette": "1"}).content.decode()
    found = re.findall(
        r'<a href="([^"]+)" role="option".*?<span class="hit">(.*?)</span>', html, re.DOTALL
    )
    return [(unescape(address), re.sub("<[^>]+>", "", unescape(name))) for address, name in found]


class TestTheTheme:
    def test_follows_the_system_until_the_person_chooses_a_theme(self, world: World) -> None:
        html = world.client("viewer").get("/").content.decode()
        assert '<html lang="en">' in html
        assert 'name="color-scheme" content="light dark"' in html

    @feature(
        "Pages",
        "Theme: light, dark or the system's; the server renders the chosen one at once",
        "agents/web/frame/theme.py",
    )
    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_a_theme_chosen_in_the_form_applies_to_the_next_page(
        self, world: World, theme: str
    ) -> None:
        client = world.client("viewer")
        response = client.post(
            "/theme/", {"theme": theme}, headers={"referer": "http://testserver/runs/"}
        )
        assert response["Location"] == "/runs/"
        html = client.get("/runs/").content.decode()
        assert f'<html lang="en" data-theme="{theme}">' in html
        assert f'name="color-scheme" content="{theme}"' in html
        assert f'data-theme="{theme}"' in client.get("/no/such/page/").content.decode()
        client.post("/theme/", {"theme": ""})
        assert '<html lang="en">' in client.get("/runs/").content.decode()

    def test_is_refused_if_its_value_is_unknown(self, world: World) -> None:
        client = world.client("viewer")
        client.post("/theme/", {"theme": '"><script>'})
        assert '<html lang="en">' in client.get("/").content.decode()
        client.cookies["gadget_theme"] = "x onload=alert(1)"
        assert '<html lang="en">' in client.get("/").content.decode()


class TestTheMenu:
    def test_has_a_different_key_for_each_page(self, world: World) -> None:
        html = world.client("admin").get("/").content.decode()
        keys = re.findall(r'data-place-key="(.)"', html)
        assert len(keys) == len(set(keys)) >= 12

    def test_shows_only_pages_that_the_role_may_open(self, world: World) -> None:
        assert "/audit/" in world.client("admin").get("/runs/").content.decode()
        assert "/audit/" not in world.client("approver").get("/runs/").content.decode()


class TestTemplateNames:
    """A name that the frame sets hides a view's variable of the same name, so the frame and the
    views must not share names."""

    def test_that_the_base_template_sets_start_with_frame(self) -> None:
        source = (ASSETS_DIR / "templates" / "base.html").read_text()
        body = create_environment().parse(source).body
        names = [name for node in body for name in find_set_names(node)]
        assert len(names) >= 4
        assert [name for name in names if not name.startswith("frame_")] == []

    @pytest.mark.parametrize(
        "name", ["pending_cards", "member", "presence", "messages", "frame_waiting"]
    )
    def test_that_are_reserved_for_the_frame_cannot_be_set_by_a_view(
        self, world: World, rf: RequestFactory, name: str
    ) -> None:
        request = rf.get("/")
        request.user = world.users["viewer"]
        request.session = SessionStore()
        with pytest.raises(ValueError, match=f"{name} belong to the frame"):
            render_page(request, world.member("viewer"), "search/page.html", {name: 1})

    def test_of_the_frame_do_not_hide_the_variables_of_an_employees_page(
        self, world: World
    ) -> None:
        world.card()
        other = Employee.objects.create(
            organization=world.acme, name="Kim", provider=world.employee.provider, max_passes=5
        )
        client = world.client("viewer")
        for employee, expected in ((world.employee, "1"), (other, "0")):
            html = client.get(f"/employees/{employee.pk}/").content.decode()
            shown = html.partition("<dt>Pending approvals</dt>")[2].partition("</dd>")[0]
            assert re.sub(r"<[^>]+>|\s", "", shown) == expected


class TestTheSearch:
    def test_finds_every_page_whose_address_needs_no_id(self, world: World) -> None:
        """An empty query lists all pages and actions."""
        found = {
            address.partition("?")[0].partition("#")[0]
            for address, _ in hits(world.client("admin"), "")
        }
        pages = {
            f"/{pattern.pattern}"
            for pattern in urlpatterns
            if "<" not in str(pattern.pattern) and pattern.name in READ
        }
        assert pages - found == NOT_LISTED

    @pytest.mark.parametrize(
        ("query", "name"),
        [
            ("notifications", "Choose your notices"),
            ("deputy", "Add a deputy"),
            ("dark", "Theme: dark"),
            ("log out", "Log out"),
            ("provider", "Model providers"),
            ("rules", "Approval rules"),
            ("tokens", "API tokens"),
            ("break-glass", "Organizations"),
            ("groups of people", "Approver groups"),
        ],
    )
    def test_finds_settings_and_actions_by_words_that_describe_them(
        self, world: World, query: str, name: str
    ) -> None:
        User.objects.filter(username="admin").update(is_staff=True, is_superuser=True)
        assert name in [found for _, found in hits(world.client("admin"), query)]

    def test_offers_only_the_members_other_organizations(self, world: World) -> None:
        Membership.objects.create(
            organization=world.globex, user=world.users["viewer"], role=Role.VIEWER
        )
        assert "Switch to Globex" in [
            name for _, name in hits(world.client("viewer"), "switch globex")
        ]
        assert hits(world.client("approver"), "switch globex") == []

    def test_hides_settings_from_people_who_cannot_open_them(self, world: World) -> None:
        for username in ("viewer", "approver", "admin"):
            found = [address for address, _ in hits(world.client(username), "provider")]
            assert not any(address.startswith("/admin/") for address in found)

    @pytest.mark.parametrize("query", ["{}", "#{}", "card {}", "Card #{}"])
    def test_finds_a_card_by_its_number_only_in_its_organization(
        self, world: World, query: str
    ) -> None:
        card = world.card()
        address = f"/approvals/{card.pk}/"
        assert address in dict(hits(world.client("viewer"), query.format(card.pk)))
        assert address not in dict(hits(world.client("outsider"), query.format(card.pk)))

    @pytest.mark.parametrize("query", ["t-{}", "Ticket t-{}"])
    def test_finds_a_tickets_run_only_in_its_organization(self, world: World, query: str) -> None:
        run = world.run()
        *_, call = [world.call(run) for _ in range(3)]
        assert call.pk != run.pk
        address = f"/runs/{call.run_id}/"
        found = [each for each, _ in hits(world.client("viewer"), query.format(call.pk))]
        assert found == [address]
        assert hits(world.client("outsider"), query.format(call.pk)) == []
        assert hits(world.client("viewer"), query.format(10**30)) == []

    @feature(
        "Pages",
        "The search finds every page, settings, tools and cards by number; the exact name of a tool comes first",
        "agents/web/frame/finding.py",
    )
    @pytest.mark.parametrize(
        "name", ["data.getRecordDetail", "data.searchRecords", "data.getStats"]
    )
    def test_puts_a_tool_with_exactly_this_name_first_everywhere(
        self, world: World, name: str
    ) -> None:
        client = world.client("viewer")
        assert hits(client, name)[0][0] == f"/tools/{name}/"
        catalog = client.get("/tools/", {"q": name}).content.decode()
        assert re.findall(r'<code class="small">([^<]+)</code>', catalog)[0] == name
        assert name in client.get(f"/tools/{name}/").content.decode()
        assert client.get("/tools/no.such/").status_code == 404

    @pytest.mark.parametrize("name", ["analysis.scoreRecord", "data.updateRecord"])
    def test_puts_a_tool_with_exactly_this_title_before_tools_that_contain_its_words(
        self, world: World, name: str
    ) -> None:
        tool = get_installed_toolbox().get_tool(name)
        assert tool is not None
        found = [
            address
            for address, _ in hits(world.client("viewer"), tool.title)
            if address.startswith("/tools/")
        ]
        assert len(found) > 1
        assert found[0] == f"/tools/{name}/"

    @pytest.mark.parametrize(
        ("query", "first"),
        [("data.getStats", "Tools"), ("DATA.GETSTATS", "Tools"), ("getStats", "Settings")],
    )
    def test_puts_a_tool_with_exactly_this_name_before_settings_that_mention_it(
        self, world: World, query: str, first: str
    ) -> None:
        member = Membership.objects.get(user__username="viewer")
        setting = finding.Hit("Limits", "settings", "/limits/", "those of data.getStats")
        groups = finding.find_everything(member, query, [setting])
        assert groups[0].label == first
        assert {"Tools", "Settings"} <= {group.label for group in groups}

    def test_puts_a_tool_with_exactly_this_name_or_title_before_partial_matches(self) -> None:
        tools = get_installed_toolbox().tools()
        last = tools[-1]
        for query in (last.name, last.name.upper(), f" {last.title} "):
            found = finding.put_exact_first(tools, query)
            assert found[0] is last
            assert found[1:] == list(tools[:-1]), "the others keep their order"

    def test_offers_an_action_without_a_page_as_a_form(self, world: World) -> None:
        html = (
            world.client("viewer")
            .get("/search/", {"q": "log out", "palette": "1"})
            .content.decode()
        )
        assert re.search(r'href="/logout/" role="option"[^>]*data-post=""', html)
        page = world.client("viewer").get("/search/", {"q": "theme: dark"}).content.decode()
        assert '<input type="hidden" name="theme" value="dark">' in page

    def test_finds_pages_and_actions_that_the_role_may_use(self, world: World) -> None:
        assert ("/stop/", "Stop everything") in hits(world.client("operator"), "stop")
        assert ("/stop/", "Stop everything") not in hits(world.client("viewer"), "stop")
        assert ("/users/#invite-head", "Invite a person") in hits(world.client("admin"), "invite")
        assert hits(world.client("approver"), "invite") == []
        assert ("/audit/", "Audit") in hits(world.client("admin"), "audit")
        assert hits(world.client("approver"), "audit") == []

    def test_finds_records_runs_and_employees_by_name(self, world: World) -> None:
        run = world.run(RunStatus.SUCCEEDED, title="Tidy the cellar", task="Sweep it")
        client = world.client("viewer")
        assert (f"/records/{world.records[0].pk}/", "Acme Corp") in hits(client, "acme co")
        assert (f"/employees/{world.employee.pk}/", "Dana") in hits(client, "DANA")
        assert (
            hits(client, "cellar")
            == hits(client, "sweep")
            == [(f"/runs/{run.pk}/", "Tidy the cellar")]
        )
        assert (f"/runs/{run.pk}/", "Tidy the cellar") in hits(client, f"#{run.pk}")
        assert (f"/runs/{run.pk}/", "Tidy the cellar") in hits(client, str(run.pk))

    @feature(
        "Pages",
        "The search shows nothing of another organization, and only the actions of the role",
        "agents/web/frame/finding.py",
    )
    def test_does_not_find_anything_of_another_organization(self, world: World) -> None:
        run = world.run(RunStatus.SUCCEEDED, title="Tidy the cellar", task="Sweep it")
        outsider = world.client("outsider")
        for query in ("acme co", "dana", "cellar", str(run.pk)):
            assert hits(outsider, query) == [], query

    def test_lists_at_most_five_hits_of_each_kind_and_says_if_there_are_no_hits(
        self, world: World
    ) -> None:
        for number in range(8):
            Record.objects.create(organization=world.acme, name=f"Zebra {number}")
        assert len(hits(world.client("viewer"), "zebra")) == finding.MAX_HITS
        response = world.client("viewer").get(
            "/search/", {"q": "nothing of the kind", "palette": "1"}
        )
        assert "Nothing found." in response.content.decode()

    @feature("Pages", "The search reads a bounded number of rows", "agents/web/frame/finding.py")
    def test_reads_a_bounded_number_of_rows(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Only the newest rows are scanned, but an exact name is found even if its row is old."""
        monkeypatch.setattr(finding, "MAX_SCANNED_RECORDS", 3)
        old = Record.objects.create(organization=world.acme, name="Old Mill")
        for number in range(4):
            Record.objects.create(organization=world.acme, name=f"Zebra {number}")
        client = world.client("viewer")
        assert hits(client, "old") == []
        assert hits(client, "old mill") == [(f"/records/{old.pk}/", "Old Mill")]

    def test_needs_a_constant_number_of_queries_for_many_rows(self, world: World) -> None:
        client = world.client("viewer")
        with CaptureQueriesContext(connection) as few:
            hits(client, "zebra")
        for number in range(20):
            Record.objects.create(organization=world.acme, name=f"Zebra {number}")
            world.run(RunStatus.SUCCEEDED, title=f"Zebra {number}")
        with CaptureQueriesContext(connection) as many:
            hits(client, "zebra")
        assert len(many) == len(few) <= 8

    def test_shows_hostile_names_as_text(self, world: World) -> None:
        Record.objects.create(
            organization=world.acme, name='<img src=x onerror="alert(1)">\u202egnp.exe'
        )
        Employee.objects.filter(pk=world.employee.pk).update(name="<b>onerror</b>")
        for extra in ({}, {"palette": "1"}):
            html = (
                world.client("viewer").get("/search/", {"q": "onerror", **extra}).content.decode()
            )
            assert "<img" not in html
            assert "<b>onerror" not in html
            assert "\u202e" not in html
            assert "&lt;img" in html

    def test_returns_a_page_for_any_text(self, world: World) -> None:
        client = world.client("viewer")
        for query in ("\0", "%_\\", "9" * 40, "#", "x" * 5000, "'\"--"):
            assert client.get("/search/", {"q": query}).status_code == 200

    def test_lists_its_hits_on_a_page_without_scripts(self, world: World) -> None:
        html = world.client("viewer").get("/search/", {"q": "acme"}).content.decode()
        assert '<form method="get"' in html
        assert f'href="/records/{world.records[0].pk}/"' in html
        assert 'role="option"' not in html.partition("<main")[2].partition("</main>")[0]
