"""Drafts: the list, the page of one draft, and its file."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.runs.models import RunStatus
from agents.web.views.drafts import PAGE_SIZE
from tests.web.pages import read_page
from tests.world import World, nobody
from tools.office.records.models import Draft

pytestmark = pytest.mark.django_db

BODY = "# Northern companies\n\nThey **grow**.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"


def create_draft(
    world: World, title: str = "Northern companies", body: str = BODY, **more: str
) -> Draft:
    values = {"kind": "report", "employee": "Dana", **more}
    return Draft.objects.create(organization=world.acme, title=title, body=body, **values)


def list_titles(html: str) -> list[str]:
    return re.findall(r'<th scope="row">\s*<a href="/drafts/\d+/">([^<]*)</a>', html)


def test_the_list_shows_the_newest_first_with_their_runs(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED, title="Look at the north")
    create_draft(world, "First")
    create_draft(world, "Second", run_id=str(run.pk))
    html = read_page(world.client("viewer"), "/drafts/")
    assert list_titles(html) == ["Second", "First"]
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
def test_the_list_filters_by_title_kind_and_employee(
    world: World, query: str, expected: list[str]
) -> None:
    create_draft(world, "First")
    create_draft(world, "Second", kind="summary", employee="Robin")
    assert list_titles(read_page(world.client("viewer"), f"/drafts/{query}")) == expected


def test_the_list_has_pages_with_a_constant_number_of_queries(world: World) -> None:
    client = world.client("viewer")

    def asked() -> tuple[int, str]:
        with CaptureQueriesContext(connection) as caught:
            html = read_page(client, "/drafts/?kind=report")
        return len(caught), html

    runs = [world.run(RunStatus.SUCCEEDED) for _ in range(3)]
    create_draft(world, "Number 0", run_id=str(runs[0].pk))
    few, _ = asked()
    for number in range(1, PAGE_SIZE + 3):
        create_draft(world, f"Number {number}", run_id=str(runs[number % 3].pk))
    many, html = asked()
    assert many == few
    found = re.search(r'<a href="(\?[^"]+)" rel="next"', html)
    assert found is not None
    older = read_page(client, "/drafts/" + found[1].replace("&amp;", "&"))
    assert len(list_titles(html)) == PAGE_SIZE
    assert list_titles(older) == ["Number 2", "Number 1", "Number 0"]


def test_a_draft_is_rendered_and_its_title_appears_once(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    draft = create_draft(world, run_id=str(run.pk))
    draft.records.add(world.records[0])
    html = read_page(world.client("viewer"), f"/drafts/{draft.pk}/")
    assert html.count("<h1>") == 1
    assert "<strong>grow</strong>" in html
    assert "<td>1</td>" in html
    assert html.count('<div class="table-box" tabindex="0"') == html.count("</table></div>") == 1
    assert f'href="/runs/{run.pk}/"' in html
    assert f'<a href="/records/{world.records[0].pk}/">Acme Corp</a>' in html


def test_a_draft_runs_no_scripts_and_loads_nothing(world: World) -> None:
    body = "<script>alert(1)</script> ![x](https://evil.example/p.png) [go](javascript:alert(1)) \u202e"
    draft = create_draft(
        world, "<script>alert(1)</script>\u202e", body, employee="<b>x</b>", run_id="<i>7</i>"
    )
    client = world.client("viewer")
    for path in ("/drafts/", f"/drafts/{draft.pk}/"):
        html = read_page(client, path)
        assert "<script>alert" not in html
        assert "<img" not in html
        assert 'href="javascript' not in html
        assert "\u202e" not in html
        assert "⟦U+202E⟧" in html


def test_the_longest_body_is_shown(world: World) -> None:
    draft = create_draft(world, body="word " * 40_000)
    assert read_page(world.client("viewer"), f"/drafts/{draft.pk}/").count("word") >= 40_000


@pytest.mark.parametrize(
    ("title", "name"),
    [('Übersicht: Q1 \r\n"x"', "ubersicht-q1-x"), ("日本", "draft"), ("../../etc", "etc")],
)
def test_a_drafts_file_contains_its_text_and_has_a_safe_name(
    world: World, title: str, name: str
) -> None:
    draft = create_draft(world, title, BODY)
    response = world.client("viewer").get(f"/drafts/{draft.pk}/draft.md")
    assert response.content.decode() == BODY
    assert response["Content-Type"] == "text/markdown; charset=utf-8"
    assert response["Content-Disposition"] == f'attachment; filename="{name}-{draft.pk}.md"'


def test_drafts_of_another_organization_return_404(world: World) -> None:
    draft = create_draft(world)
    client = world.client("outsider")
    assert client.get(f"/drafts/{draft.pk}/").status_code == 404
    assert client.get(f"/drafts/{draft.pk}/draft.md").status_code == 404
    assert list_titles(read_page(client, "/drafts/")) == []


def test_a_run_of_another_organization_is_never_linked(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED, task="A secret task")
    draft = Draft.objects.create(
        organization=world.globex, kind="report", title="T", body="x", run_id=str(run.pk)
    )
    client = world.client("outsider")
    for path in ("/drafts/", f"/drafts/{draft.pk}/"):
        assert "A secret task" not in read_page(client, path)


@pytest.mark.parametrize("path", ["/drafts/", "/drafts/1/", "/drafts/1/draft.md"])
def test_logged_out_people_are_redirected_to_the_login(path: str) -> None:
    assert nobody().get(path).status_code == 302
