"""Every address, setting and make target in the documentation exists, as does every file in the
engine's diagram."""

import re
from pathlib import Path

import pytest
from django.urls import Resolver404, resolve

from gadget_site.setting_names import OWN_NAMES
from tests.docs.pages import PAGES
from tests.source_tree import ROOT, assert_none

ADDRESS = re.compile(
    r"`(?:(?:GET|POST|PUT|PATCH|DELETE) )?((?:/api/|/(?:\w+/)*(?=`))[\w/{}-]*|/metrics)`"
)
FOREIGN_ADDRESSES = {"connect-an-api.md"}
"""Pages that show addresses of other software."""

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def leads_nowhere(address: str) -> bool:
    """Return True if every request to this address would return "not found"."""
    try:
        return resolve(re.sub(r"\{\w+\}", "1", address)).route.endswith(
            ("<path:rest>", "<path:rest>/")
        )
    except Resolver404:
        return True


@by_page
def test_every_documented_address_exists(page: Path) -> None:
    if page.name in FOREIGN_ADDRESSES:
        return
    named = set(ADDRESS.findall(page.read_text(encoding="utf-8")))
    assert_none(sorted(filter(leads_nowhere, named)), f"{page.name} names addresses that exist")


def test_a_wrong_address_is_detected() -> None:
    assert ADDRESS.findall("`POST /api/tool_calls/{id}/settle`, `/stop/`, `/var/lib`") == [
        "/api/tool_calls/{id}/settle",
        "/stop/",
    ]
    assert leads_nowhere("/api/tool_calls/{id}/settle")
    assert leads_nowhere("/stopp/")
    assert not leads_nowhere("/api/tool_calls/{id}/resolve")


@by_page
def test_every_documented_setting_with_our_prefix_exists(page: Path) -> None:
    named = set(re.findall(r"\bGADGET_[A-Z_]+\b", page.read_text(encoding="utf-8")))
    assert_none(sorted(named - OWN_NAMES.keys()), f"{page.name} names settings that exist")


@by_page
def test_every_documented_make_target_exists(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(
        re.findall(r"(?:^|`|; )make (\w+)", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
    missing = [
        target
        for target in sorted(named)
        if not re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
    ]
    assert_none(missing, f"{page.name} names targets of make that exist")


def test_every_file_in_the_engines_diagram_exists() -> None:
    page = (ROOT / "docs" / "internals" / "engine.md").read_text(encoding="utf-8")
    diagram = page.partition("```mermaid\n")[2].partition("```")[0]
    named = set(re.findall(r"[\w/]+\.py", diagram))
    folders = (ROOT / "agents" / "runs" / "engine", ROOT / "agents")
    missing = [
        name for name in sorted(named) if not any((folder / name).is_file() for folder in folders)
    ]
    assert named
    assert_none(missing, "the engine's diagram names files that exist")


def anchors_of(page: Path) -> set[str]:
    """Return the anchors that Markdown renderers give to the page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@by_page
def test_every_link_to_a_section_resolves(page: Path) -> None:
    links = re.findall(r"\]\(([\w./-]*\.md|)#([\w-]+)\)", page.read_text(encoding="utf-8"))
    broken = [
        f"{target}#{anchor}"
        for target, anchor in links
        if anchor not in anchors_of(page.parent / target if target else page)
    ]
    assert_none(broken, f"{page.name} links to headings that exist")
