"""The documentation pages, for the tests that read them."""

from tests.source_tree import ROOT

DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
