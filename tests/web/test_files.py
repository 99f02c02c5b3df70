"""The pages for files: the list, uploads with a report, downloads as attachments, and deletions
that must be confirmed, each with the permissions of every role."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from asgiref.sync import async_to_sync
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from agents.accounts.models import AuditEntry
from agents.web.views import files as views
from agents.web.views.files import MAX_NAMED, MAX_SHOWN, PAGE_SIZE
from tests.audit_chain import verify_audit
from tests.tools.office import test_files_stay_inside as hostile
from tests.world import World, make_world
from tools.office.files import changes
from tools.registries.files import FILE_STORE

pytestmark = [pytest.mark.django_db, pytest.mark.once]

GROUPS = {
    "climbs": hostile.CLIMBS,
    "absolute": hostile.ABSOLUTE,
    "encoded": hostile.ENCODED,
    "look-alikes": hostile.LOOKALIKES,
    "hidden": hostile.HIDDEN,
    "loose": hostile.LOOSE,
    "windows": hostile.WINDOWS,
    "long": [path for path in hostile.LONG if len(path) < 4_000],
}
NOT_FOUND_OR_REDIRECTED = {404, 301}
"""The statuses of a response that does not show a file: not found, or a redirect to the same path
with or without a final slash."""


@pytest.fixture
def world(settings: Settings, tmp_path: Path) -> World:
    settings.GADGET_FILES_DIR = tmp_path / "files"
    return make_world()


@pytest.fixture
def folder(world: World, settings: Settings) -> Path:
    """Create a file in a folder of Acme's files."""
    place = Path(settings.GADGET_FILES_DIR) / str(world.acme.pk)
    (place / "reports").mkdir(parents=True)
    (place / "reports" / "a b.txt").write_text("Hello")
    return place


def read_files(client: Client, query: str = "") -> str:
    response = client.get(f"/files/{query}")
    assert response.status_code == 200
    return response.content.decode()


def upload(client: Client, *files: tuple[str, bytes], folder: str = "") -> Any:
    given = [SimpleUploadedFile(name, content) for name, content in files]
    return client.post("/files/upload/", {"files": given, "folder": folder})


def read_download(response: Any) -> bytes:
    async def join_parts() -> bytes:
        return b"".join([part async for part in response])

    return async_to_sync(join_parts)()


def delete(client: Client, path: str) -> Any:
    """Request the deletion and confirm it."""
    asked = client.post(f"/files/delete/{quote(path)}")
    assert asked.status_code == 200
    (seal,) = re.findall(r'name="confirmed" value="(\w+)"', asked.content.decode())
    return client.post(f"/files/delete/{quote(path)}", {"confirmed": seal})


# The list


@pytest.mark.parametrize("username", ["viewer", "operator", "approver", "admin"])
def test_every_role_sees_the_files_and_only_the_actions_that_it_may_take(
    world: World, folder: Path, username: str
) -> None:
    html = read_files(world.client(username), "?folder=reports")
    assert 'href="/files/download/reports/a%20b.txt" download' in html
    assert ("Upload files" in html) is (username != "viewer")
    assert ("/files/delete/" in html) is (username in {"approver", "admin"})


def test_folders_and_breadcrumbs_are_links(world: World, folder: Path) -> None:
    client = world.client("viewer")
    assert 'href="/files/?folder=reports"' in read_files(client)
    html = read_files(client, "?folder=reports")
    assert '<a href="/files/">Files</a>' in html
    assert '<span aria-current="page">reports</span>' in html
    assert "5\xa0bytes" in html


def test_an_empty_folder_says_so(world: World, folder: Path) -> None:
    (folder / "empty").mkdir()
    assert "No files yet." in read_files(world.client("outsider"))
    assert "This folder is empty." in read_files(world.client("viewer"), "?folder=empty")


def test_a_long_list_has_pages(world: World, folder: Path) -> None:
    for number in range(PAGE_SIZE + 1):
        (folder / "reports" / f"n{number:04}.txt").touch()
    client = world.client("viewer")
    assert "page=2" in read_files(client, "?folder=reports")
    assert f"n{PAGE_SIZE:04}.txt" in read_files(client, "?folder=reports&page=2")
    assert "n0000.txt" in read_files(client, "?folder=reports&page=x%00")


def test_skipped_entries_are_counted_and_not_named(world: World, folder: Path) -> None:
    (folder / "link").symlink_to("/etc")
    (folder / "a\u202etxt.exe").touch()
    (folder / "<b>bold").touch()
    html = read_files(world.client("viewer"))
    assert "3 items in this folder are not shown" in html
    assert "bold" not in html


def test_a_name_is_escaped(world: World, folder: Path) -> None:
    upload(world.client("operator"), ("a&amp;'b;.txt", b"x"))
    assert "a&amp;&#x27;b;.txt" in read_files(world.client("viewer"))


# Strangers and hostile paths


@pytest.mark.parametrize(
    "path",
    [
        "?folder=reports",
        "download/reports/a%20b.txt",
        "?folder=../{acme}",
        "download/../{acme}/reports/a%20b.txt",
    ],
)
def test_files_of_another_organization_return_404(world: World, folder: Path, path: str) -> None:
    assert (
        world.client("outsider").get(f"/files/{path.format(acme=world.acme.pk)}").status_code == 404
    )


@pytest.mark.parametrize("group", GROUPS)
def test_a_hostile_path_is_refused(world: World, folder: Path, group: str) -> None:
    client = world.client("admin")
    for given in filter(None, GROUPS[group]):
        path = given.encode("utf-8", "replace").decode()
        assert client.get("/files/", {"folder": path}).status_code == 404, path
        assert (
            client.get(f"/files/download/{quote(path)}").status_code in NOT_FOUND_OR_REDIRECTED
        ), path
        assert client.post(f"/files/delete/{quote(path)}").status_code in NOT_FOUND_OR_REDIRECTED, (
            path
        )
        assert upload(client, ("new.txt", b"x"), folder=path).status_code == 422, path
    assert [one.name for one in folder.iterdir()] == ["reports"]
    assert not AuditEntry.objects.exists()


# Upload


def test_an_upload_is_reported_for_each_file_and_recorded_in_the_audit(
    world: World, folder: Path
) -> None:
    client = world.client("operator")
    response = upload(
        client, ("one.txt", b"1"), ("nul.txt", b"2"), ("a b.txt", b"3"), folder="reports"
    )
    assert (response.status_code, response["Location"]) == (302, "/files/?folder=reports")
    html = read_files(client, "?folder=reports")
    assert "“one.txt” was uploaded." in html
    assert "“nul.txt” was not uploaded:" in html
    assert "“a b.txt” was not uploaded: A file with this name already exists." in html
    assert "was uploaded" not in read_files(client, "?folder=reports"), "the report is shown once"
    assert (folder / "reports" / "one.txt").read_bytes() == b"1"
    assert (folder / "reports" / "a b.txt").read_text() == "Hello"
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action, entry.subject) == (
        "user:operator",
        "file_uploaded",
        "file:reports/one.txt",
    )
    assert (entry.payload["size"], len(entry.payload["sha256"])) == (1, 64)
    assert verify_audit(world.acme.pk) == []


def test_the_report_names_the_first_uploads_and_counts_the_rest(world: World, folder: Path) -> None:
    client = world.client("operator")
    upload(client, *((f"{n:02}.txt", b"x") for n in range(MAX_NAMED + 3)))
    assert f"{MAX_NAMED - 1:02}.txt” and 3 more were uploaded." in read_files(client)


def test_an_upload_creates_a_missing_folder(world: World, folder: Path) -> None:
    response = upload(world.client("operator"), ("x.bin", b"\0\xff"), folder="2026/new")
    assert response["Location"] == "/files/?folder=2026%2Fnew"
    assert (folder / "2026" / "new" / "x.bin").read_bytes() == b"\0\xff"


def test_a_viewer_cannot_upload(world: World, folder: Path) -> None:
    assert upload(world.client("viewer"), ("x.txt", b"x")).status_code == 403
    assert not AuditEntry.objects.exists()
    assert [one.name for one in folder.iterdir()] == ["reports"]


def test_an_upload_without_a_file_is_refused(world: World, folder: Path) -> None:
    response = world.client("operator").post(
        "/files/upload/", {"folder": "reports", "files": "no file"}
    )
    assert response.status_code == 422
    assert "Choose at least one file." in response.content.decode()


@pytest.mark.parametrize(
    "name", ["../../evil.txt", "..\\..\\evil.txt", "/etc/evil.txt", "C:\\evil.txt"]
)
def test_only_the_last_part_of_an_uploaded_name_is_used(
    world: World, folder: Path, name: str
) -> None:
    assert upload(world.client("operator"), (name, b"x")).status_code in {302, 422}
    found = {one.name for one in folder.parent.parent.rglob("*.txt")}
    assert found <= {"a b.txt", "evil.txt"}
    assert {one.name for one in folder.iterdir()} <= {"reports", "evil.txt"}


def test_a_file_that_is_too_large_is_refused_and_leaves_no_trace(
    world: World, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "LARGEST_FILE", 1_000_000)
    response = upload(world.client("operator"), ("big.bin", b"x" * 1_000_001))
    assert response.status_code == 422
    assert (
        "<b>big.bin</b> was not uploaded: The file is larger than 1 MB."
        in response.content.decode()
    )
    assert [one.name for one in folder.iterdir()] == ["reports"]
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("way", ["reports/a b.txt", "reports/link"])
def test_a_failed_upload_is_not_in_the_audit(world: World, folder: Path, way: str) -> None:
    (folder / "reports" / "link").symlink_to(folder)
    response = upload(world.client("operator"), ("x.txt", b"x"), folder=way)
    assert response.status_code == 422
    assert "There is no folder" in response.content.decode()
    assert not AuditEntry.objects.exists()


def test_the_connection_is_released_before_waiting_for_other_writers(
    world: World, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts: list[str] = []
    monkeypatch.setattr(views, "release_connection", lambda: acts.append("release"))
    acting: dict[str, Any] = {
        name: lambda *_, name=name: acts.append(name) for name in ("write_file", "delete_files")
    }
    store = replace(FILE_STORE.get(), **acting)
    monkeypatch.setattr(FILE_STORE, "get", lambda: store)
    upload(world.client("operator"), ("x.txt", b"x"), ("y.txt", b"y"))
    delete(world.client("approver"), "reports")
    assert acts == ["release", "write_file"] * 2 + ["release", "delete_files"]


# Download


@pytest.mark.parametrize("name", ["page.html", "picture.svg", "köln.pdf", "a;b=c.js", "no-ending"])
def test_a_download_is_always_an_attachment(world: World, folder: Path, name: str) -> None:
    (folder / name).write_text("<script>alert(1)</script>")
    response = world.client("viewer").get(f"/files/download/{quote(name)}")
    assert response.status_code == 200
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"].startswith("attachment; filename")
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Cache-Control"] == "no-store"
    assert response["Content-Length"] == "25"
    assert read_download(response) == b"<script>alert(1)</script>"


def test_a_large_file_is_streamed_whole(world: World, folder: Path) -> None:
    content = bytes(range(256)) * 4_000
    (folder / "large.bin").write_bytes(content)
    assert read_download(world.client("viewer").get("/files/download/large.bin")) == content


def test_links_and_folders_cannot_be_downloaded(world: World, folder: Path) -> None:
    (folder / "link").symlink_to("/etc/passwd")
    client = world.client("admin")
    for path in ("link", "reports", "reports/nope.txt"):
        assert client.get(f"/files/download/{path}").status_code == 404


# Deletion


def test_a_deletion_needs_confirmation_and_is_in_the_audit(world: World, folder: Path) -> None:
    client = world.client("approver")
    asked = client.post("/files/delete/reports").content.decode()
    assert "reports/a b.txt" in asked
    assert (folder / "reports").exists()
    assert delete(client, "reports").status_code == 302
    assert not (folder / "reports").exists()
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action, entry.subject) == (
        "user:approver",
        "file_deleted",
        "file:reports",
    )
    assert entry.payload == {"path": "reports", "files": 1, "paths": ["reports/a b.txt"]}


def test_a_folder_that_was_kept_is_not_reported_as_deleted(world: World, folder: Path) -> None:
    (folder / "reports" / "link").symlink_to(folder)
    client = world.client("approver")
    assert delete(client, "reports").status_code == 302
    assert (
        "The files in “reports” were deleted. The folder was kept because it is not empty."
        in read_files(client)
    )
    again = client.post("/files/delete/reports")
    assert again.status_code == 409
    assert "it contains only entries that cannot be deleted" in again.content.decode()
    assert AuditEntry.objects.count() == 1


def test_an_outdated_confirmation_deletes_nothing(world: World, folder: Path) -> None:
    client = world.client("admin")
    asked = client.post("/files/delete/reports").content.decode()
    (seal,) = re.findall(r'name="confirmed" value="(\w+)"', asked)
    (folder / "reports" / "new.txt").write_text("new")
    again = client.post("/files/delete/reports", {"confirmed": seal})
    assert again.status_code == 200
    assert "reports/new.txt" in again.content.decode()
    assert (folder / "reports" / "new.txt").exists()
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("username", ["viewer", "operator"])
def test_deletion_requires_the_approver_role(world: World, folder: Path, username: str) -> None:
    assert (
        world.client(username).post("/files/delete/reports", {"confirmed": "x"}).status_code == 403
    )
    assert (folder / "reports").exists()


def test_the_confirmation_for_many_files_shows_the_first_files_and_their_number(
    world: World, folder: Path
) -> None:
    for number in range(MAX_SHOWN + 10):
        (folder / "reports" / f"{number}.txt").touch()
    asked = world.client("admin").post("/files/delete/reports").content.decode()
    assert f"You are deleting {MAX_SHOWN + 11} files:" in asked
    assert len(re.findall(r"<li>\s*reports/", asked)) == MAX_SHOWN


def test_deleting_too_many_files_is_refused_with_their_number(
    world: World, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MAX_DELETED", 1)
    (folder / "reports" / "b.txt").touch()
    response = world.client("admin").post("/files/delete/reports")
    assert response.status_code == 409
    assert "contains 2 files" in response.content.decode()
