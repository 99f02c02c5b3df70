"""In a browser: files are uploaded, found, downloaded and deleted after a confirmation; the page
does not scroll sideways at any width."""

from __future__ import annotations

import pytest
from playwright.sync_api import FilePayload, expect

from tests.journeys.office import Office
from tests.journeys.visitor import IS_TOO_WIDE, Visit

pytestmark = pytest.mark.once

FILES = [
    FilePayload(name="notes.txt", mimeType="text/plain", buffer=b"Hello"),
    FilePayload(
        name=f"{'a-long-name-' * 12}.html",
        mimeType="text/html",
        buffer=b"<script>alert(1)</script>",
    ),
    FilePayload(name="nul.txt", mimeType="text/plain", buffer=b"x"),
]


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
@pytest.mark.every_commit
def test_files_can_be_uploaded_downloaded_and_deleted(
    office: Office, visit: Visit, scripts: bool
) -> None:
    page = visit("approver", scripts=scripts).page
    page.goto("/files/")
    expect(page.get_by_text("No files yet.")).to_be_visible()
    page.get_by_label("Files", exact=True).set_input_files(FILES)
    page.get_by_label("Folder").fill("reports/2026")
    page.get_by_role("button", name="Upload").click()
    expect(page.locator(".notice.error").get_by_text("“nul.txt” was not uploaded")).to_be_visible()
    expect(page.locator(".notice.success")).to_contain_text(["html” were uploaded."])
    page.reload()  # does not send the form again
    expect(page.locator(".notice:visible")).to_have_count(0)
    expect(page.get_by_role("navigation", name="Path")).to_contain_text("reports")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="notes.txt").click()
    assert (waiting.value.suggested_filename, waiting.value.path().read_bytes()) == (
        "notes.txt",
        b"Hello",
    )
    page.get_by_role("button", name="Delete “notes.txt”").click()
    expect(page.get_by_role("heading", name="Delete “reports/2026/notes.txt”?")).to_be_visible()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("“reports/2026/notes.txt” was deleted.")).to_be_visible()
    expect(page.get_by_role("row")).to_have_count(2)


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_the_page_does_not_scroll_sideways_at_any_width(
    office: Office, visit: Visit, width: int
) -> None:
    page = visit("admin").page
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/files/")
    page.get_by_label("Files", exact=True).set_input_files(FILES)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("row")).to_have_count(3)
    assert not page.evaluate(IS_TOO_WIDE)
    page.get_by_role("button", name="Delete “a-long-name").click()
    assert not page.evaluate(IS_TOO_WIDE)
