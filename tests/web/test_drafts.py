"""Drafts: the list of what employees wrote, one as it reads, and its file."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.runs.models import RunStatus
from agents.web.views.drafts import PAGE_SIZE
from tests.world import World, make_world, nobody
from tools.records.models import Draft

pytestmark = pytest.mark.django_db

BODY = "# Northern companies\n\nThey **grow**.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"


@pytest.fixture
def world() -> World:
    return make_world()


def text_of(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def draft_of(world: World, title: str = "Northern companies", body: str = BODY, **more: str) -> Draft:
    values = {"kind": "report", "employee": "Dana", **more}
    return Draft.objects.create(organization=world.acme, title=title, body=body, **values)


def titles_on(html: str) -> list[str]:
    return re.findall(r'<th scope="row">\s*<a href="/drafts/\d+/">([^<]*)</a>', html)


def test_they_are_listed_newest_first_with_the_run_that_made_them(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED, title="Look at the north")
    draft_of(world, "First")
    draft_of(world, "Second", run_id=str(run.pk))
    html = text_of(world.client("viewer"), "/drafts/")
    assert titles_on(html) == ["Second", "First"]
    assert f'<a href="/runs/{run.pk}/">Look at the north</a>' in html


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?q=first", ["First"]),
        ("?kind=summary", ["Second"]),
        ("?employee=Robin", ["Second"]),
        ("?q=none", []),
        ("?kind=x&before=y", ["Second", "First"]),
        ("?q=%00", ["Second", "First"]),
    ],
)
def test_they_are_filtered_by_title_kind_and_employee(world: World, query: str, expected: list[str]) -> None:
    draft_of(world, "First")
    draft_of(world, "Second", kind="summary", employee="Robin")
    assert titles_on(text_of(world.client("viewer"), f"/drafts/{query}")) == expected


def test_older_ones_come_in_pages_with_the_same_number_of_questions(world: World) -> None:
    client = world.client("viewer")

    def asked() -> tuple[int, str]:
        with CaptureQueriesContext(connection) as caught:
            html = text_of(client, "/drafts/?kind=report")
        return len(caught), html

    runs = [world.run(RunStatus.SUCCEEDED) for _ in range(3)]
    draft_of(world, "Number 0", run_id=str(runs[0].pk))
    few, _ = asked()
    for number in range(1, PAGE_SIZE + 3):
        draft_of(world, f"Number {number}", run_id=str(runs[number % 3].pk))
    many, html = asked()
    assert many == few
    found = re.search(r'<a href="(\?[^"]+)" rel="next"', html)
    assert found is not None
    older = text_of(client, "/drafts/" + found[1].replace("&amp;", "&"))
    assert len(titles_on(html)) == PAGE_SIZE
    assert titles_on(older) == ["Number 2", "Number 1", "Number 0"]


def test_one_reads_as_it_was_meant_and_repeats_its_title_not(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    draft = draft_of(world, run_id=str(run.pk))
    draft.records.add(world.records[0])
    html = text_of(world.client("viewer"), f"/drafts/{draft.pk}/")
    assert html.count("<h1>") == 1
    assert "<strong>grow</strong>" in html
    assert "<td>1</td>" in html
    assert html.count('<div class="table-box" tabindex="0"') == html.count("</table></div>") == 1
    assert f'href="/runs/{run.pk}/"' in html
    assert f'<a href="/records/{world.records[0].pk}/">Acme Corp</a>' in html


def test_nothing_in_one_runs_or_loads(world: World) -> None:
    body = "<script>alert(1)</script> ![x](https://evil.example/p.png) [go](javascript:alert(1)) \u202e"
    draft = draft_of(world, "<script>alert(1)</script>\u202e", body, employee="<b>x</b>", run_id="<i>7</i>")
    client = world.client("viewer")
    for path in ("/drafts/", f"/drafts/{draft.pk}/"):
        html = text_of(client, path)
        assert "<script>alert" not in html
        assert "<img" not in html
        assert 'href="javascript' not in html
        assert "\u202e" not in html
        assert "⟦U+202E⟧" in html


def test_the_longest_body_is_shown(world: World) -> None:
    draft = draft_of(world, body="word " * 40_000)
    assert text_of(world.client("viewer"), f"/drafts/{draft.pk}/").count("word") >= 40_000


@pytest.mark.parametrize(
    ("title", "name"), [('Übersicht: Q1 \r\n"x"', "ubersicht-q1-x"), ("日本", "draft"), ("../../etc", "etc")]
)
def test_its_file_holds_what_was_written_under_a_tame_name(world: World, title: str, name: str) -> None:
    draft = draft_of(world, title, BODY)
    answer = world.client("viewer").get(f"/drafts/{draft.pk}/draft.md")
    assert answer.content.decode() == BODY
    assert answer["Content-Type"] == "text/markdown; charset=utf-8"
    assert answer["Content-Disposition"] == f'attachment; filename="{name}-{draft.pk}.md"'


def test_another_organizations_drafts_are_not_there(world: World) -> None:
    draft = draft_of(world)
    client = world.client("outsider")
    assert client.get(f"/drafts/{draft.pk}/").status_code == 404
    assert client.get(f"/drafts/{draft.pk}/draft.md").status_code == 404
    assert titles_on(text_of(client, "/drafts/")) == []


def test_a_run_of_another_organization_is_never_linked(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED, task="A secret task")
    draft = Draft.objects.create(organization=world.globex, kind="report", title="T", body="x", run_id=str(run.pk))
    client = world.client("outsider")
    for path in ("/drafts/", f"/drafts/{draft.pk}/"):
        assert "A secret task" not in text_of(client, path)


@pytest.mark.parametrize("path", ["/drafts/", "/drafts/1/", "/drafts/1/draft.md"])
def test_nobody_is_sent_to_the_login(path: str) -> None:
    assert nobody().get(path).status_code == 302
