"""No path, link or special file lets the files.* tools leave the organization's folder."""

import itertools
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.features import feature
from tools.contract import ToolError, ToolResult
from tools.office.files.paths import LONGEST_NAME, MAX_DEPTH, parse_path
from tools.office.tools.files import DeleteFile, ListFiles, ReadFile, SearchFiles, WriteFile
from tools.testing import run_tool

pytestmark = pytest.mark.once

SECRET = "outside-secret"
ORGANIZATION = 1

CLIMBS = [
    "..", "../secret.txt", "../../secret.txt", "a/../../secret.txt", "a/..", "a/../b.txt", ".", "./b.txt", "a/./b.txt",
    "a/.", "...", "a/.../b", "....//secret.txt", "..;/secret.txt", ".. /secret.txt", " ../secret.txt", "../",
    "../2/b.txt", "a/b/c/../../../../secret.txt", "../1/../secret.txt", "..\\secret.txt", "a\\..\\..\\secret.txt",
    "\\..\\secret.txt", "..\\/secret.txt", "../\\secret.txt", ".\\b.txt", "....\\\\secret.txt",
]  # fmt: skip
ABSOLUTE = [
    "/", "//", "/etc/passwd", "//etc/passwd", "///etc/passwd", "/../etc/passwd", "/proc/self/environ", "/dev/zero",
    "/dev/stdin", "a//b.txt", "a/", "a//", "/a/b.txt", "//server/share/x", "\\\\server\\share\\x", "\\\\?\\C:\\x",
    "\\\\.\\PhysicalDrive0", "file:///etc/passwd", "file:/etc/passwd", "http://127.0.0.1/x", "smb://server/x",
]  # fmt: skip
ENCODED = [
    "%2e%2e/secret.txt", "%2e%2e%2fsecret.txt", "..%2fsecret.txt", "%2E%2E%5Csecret.txt", "..%5csecret.txt",
    "%252e%252e%252fsecret.txt", "..%252fsecret.txt", "%c0%ae%c0%ae/secret.txt", "%c0%af", "..%c0%afsecret.txt",
    "%uff0e%uff0e/x%2f", "a%00.txt", "%00", "b.txt%00.png", "%2f", "%5c", "%7e/x", "a/%2e%2e/b", "%ff%fe",
    "&#46;&#46;/\u0000", "\\u002e\\u002e/x", "\\x2e\\x2e/x",
]  # fmt: skip
LOOKALIKES = [
    "\uff0e\uff0e/secret.txt", "\u2024\u2024/secret.txt", "\u2025/secret.txt", "\u2026/secret.txt", "\ufe52\ufe52/x",
    "\uff0e", "\u2024", "a\u2024txt", "..\u2215secret.txt", "..\u2044secret.txt", "..\uff0fsecret.txt", "..\u29f8x",
    "a\uff0fb.txt", "a\u2215b.txt", "a\u2044b.txt", "a\u29f8b", "a\u2571b", "a\u27cbb", "a\u29f9b", "a\uff3cb",
    "a\u2216b", "a\ufe68b", "a\u29f5b", "a\u2572b", "a\u27cdb", "\u2025", "\uff0e\uff0e\uff0fsecret.txt",
]  # fmt: skip
HIDDEN = [
    "\0", "a\0b.txt", "b.txt\0", "b.txt\0.png", "..\0/secret.txt", "a\nb.txt", "a\rb.txt", "a\tb.txt", "\x7f",
    "a\x1b[2Jb", "\x01", "a\x85b", "a\u200bb.txt", "\u200b..\u200b/x", "a\u200cb", "a\u200db", "a\u2060b",
    "\ufeffb.txt", "a\u202etxt.exe", "a\u202db", "a\u2066b\u2069", "a\u2028b", "a\u2029b", "a\u00adb", "\ud800",
    "a\udcffb", "\udfff.txt", "a\ue000b", "\U000e0041b", "\U0010ffff", "a\u061cb", "a\u180eb", "a\ufff9b",
]  # fmt: skip
LOOSE = [
    " ", "  ", "a ", " a", "a /b.txt", " a/b.txt", "b.txt ", "b.txt.", "b.txt..", "a./b.txt", "a../b.txt", "b.txt. ",
    "b.txt .", "\u00a0a", "a\u00a0", "\u3000a", "a\u2003", "", ".hidden", ".env", ".git/config", ".gadget-0123",
    "a/.ssh/id", "~", "~/secret.txt", "~root/.ssh/id", "~+/x", "a/~", "~1", "\u2026",
]  # fmt: skip
WINDOWS = [
    "C:", "C:\\x", "C:/x", "c:x", "Z:/secret.txt", "a:b", "b.txt:stream", "b.txt::$DATA", "con", "CON", "Con.txt",
    "con.tar.gz", "prn", "PRN.md", "aux", "aux.c", "NUL", "nul.txt", "a/nul", "nul/b.txt", "com1", "COM9.txt", "COM0",
    "lpt1", "LPT9.log", "com\u00b9", "COM\u00b2.txt", "lpt\u00b3", "conin$", "CONOUT$", "clock$", "nul .txt", "con  .x",
    "\uff23\uff2f\uff2e", "\uff4e\uff55\uff4c.txt", "a<b", "a>b", 'a"b', "a|b", "a?b", "a*b", "*", "?", "|ls", "a\\b",
]  # fmt: skip
LONG = [
    "a" * (LONGEST_NAME + 1), "\u00e4" * (LONGEST_NAME // 2 + 1), "\U0001f600" * 64, "b" * 5_000, "x" * 100_000,
    "/".join(["a"] * (MAX_DEPTH + 1)), "/".join(["a"] * 2_000), "a/" * 3_000, "../" * 1_000 + "secret.txt",
    "/".join(["a" * LONGEST_NAME] * (MAX_DEPTH + 1)),
]  # fmt: skip
HOSTILE = sorted({*CLIMBS, *ABSOLUTE, *ENCODED, *LOOKALIKES, *HIDDEN, *LOOSE, *WINDOWS, *LONG})

GOOD = [
    "b.txt", "a/b.txt", "Report 2026 (final).md", "k\u00f6ln.txt", "\u65e5\u672c\u8a9e.txt", "a.b.c", "a..b",
    "100%.txt", "x%zz", "a'b", "a;b", "a&b=c", "#1.txt", "$HOME", "`id`", "-rf", "console.txt", "com10", "nulls.txt",
    "auxiliary", "\U0001f600.md", "a" * LONGEST_NAME, "/".join(["a"] * MAX_DEPTH), "e\u0301t\u00e9.txt",
]  # fmt: skip


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder outside all organizations' folders, with a secret that must be neither read nor
    changed."""
    place = tmp_path / "outside"
    (place / "deeper").mkdir(parents=True)
    (place / "secret.txt").write_text(SECRET)
    (place / "deeper" / "secret.txt").write_text(SECRET)
    return place


@pytest.fixture
def folder(tmp_path: Path, outside: Path, settings: Settings) -> Iterator[Path]:
    """The organization's folder; after the test, everything outside it must be unchanged."""
    base = tmp_path / "files"
    settings.GADGET_FILES_DIR = base
    own, other = base / str(ORGANIZATION), base / "2"
    for place in (own / "a", other):
        place.mkdir(parents=True)
        (place / "b.txt").write_text("b")
    for place in (base, other):
        (place / "secret.txt").write_text(SECRET)
    before = everything_beside(tmp_path, own)
    yield own
    assert everything_beside(tmp_path, own) == before


def everything_beside(place: Path, own: Path) -> dict[str, bytes]:
    """Return all files below `place` but outside the organization's folder."""
    found = {}
    for folder, _, files in os.walk(place):
        if Path(folder) == own or own in Path(folder).parents:
            continue
        found[folder] = b""
        found.update({f"{folder}/{name}": (Path(folder) / name).read_bytes() for name in files})
    return found


def all_tools(path: str) -> list[ToolResult]:
    """Return each tool's response to this path."""
    return [
        run_tool(ListFiles, {"path": path, "recursive": True}),
        run_tool(ReadFile, {"path": path}),
        run_tool(SearchFiles, {"path": path, "pattern": "."}),
        run_tool(WriteFile, {"path": path, "text": "overwritten"}),
        run_tool(DeleteFile, {"path": path}),
    ]


def assert_nothing_told(results: list[ToolResult]) -> None:
    for result in results:
        assert SECRET not in result.for_model()
        assert "root:" not in result.for_model()


@feature(
    "Built-in tools",
    "`files.list`, `read`, `grep`, `write`, `delete`, limited to the organization's own folder",
    "tools/office/tools/files.py",
    whole_file=True,
)
def test_at_least_200_hostile_paths_are_tested() -> None:
    assert len(HOSTILE) >= 200


@pytest.mark.parametrize("path", HOSTILE, ids=[repr(path)[:60] for path in HOSTILE])
def test_a_hostile_path_is_refused_before_anything_is_opened(folder: Path, path: str) -> None:
    results = all_tools(path)
    assert_nothing_told(results)
    wanted = results[1:2] + results[3:] if path == "" else results
    for result in wanted:
        assert result.error is not None
        assert result.error.code == "INVALID_PARAMETER"
        assert result.error.is_definite
    assert sorted(one.name for one in folder.rglob("*")) == ["a", "b.txt"]


@pytest.mark.parametrize("path", GOOD)
def test_a_file_at_an_ordinary_path_can_be_written_read_and_deleted(
    folder: Path, path: str
) -> None:
    assert run_tool(WriteFile, {"path": path, "text": "overwritten"}).success
    assert "overwritten" in run_tool(ReadFile, {"path": path}).for_model()
    assert (folder / "/".join(parse_path(path))).read_text() == "overwritten"
    assert run_tool(DeleteFile, {"path": path}).success


def test_composed_and_decomposed_letters_name_the_same_file(folder: Path) -> None:
    run_tool(WriteFile, {"path": "e\u0301.txt", "text": "one"})
    assert run_tool(ReadFile, {"path": "\u00e9.txt"}).data["text"] == "one"


# Links


LINKS = [
    "link", "link/secret.txt", "link/deeper/secret.txt", "file.txt", "up", "up/secret.txt", "other", "other/secret.txt",
    "chain", "chain/secret.txt", "loop", "loop/b.txt", "itself", "dangling", "dangling/new.txt", "etc", "etc/passwd",
    "proc/self/environ", "a/link", "a/link/secret.txt", "a/link/new.txt", "relative", "relative/secret.txt",
]  # fmt: skip


@pytest.fixture
def linked(folder: Path, outside: Path) -> Path:
    """The folder, full of links that lead out of it or to a missing file."""
    links: dict[str, str | Path] = {
        "link": outside, "file.txt": outside / "secret.txt", "up": "..", "other": "../2", "chain": "chain-2",
        "chain-2": "chain-3", "chain-3": outside, "loop": "loop-2", "loop-2": "loop", "itself": "itself",
        "dangling": outside / "not-there", "etc": "/etc", "proc": "/proc", "a/link": outside,
        "relative": "../../outside", "a/inside": "b.txt",
    }  # fmt: skip
    for name, target in links.items():
        (folder / name).symlink_to(target)
    return folder


@pytest.mark.parametrize("path", LINKS)
def test_a_link_is_treated_as_missing(linked: Path, path: str) -> None:
    results = all_tools(path)
    assert_nothing_told(results)
    assert [result.success for result in results] == [False] * 5
    assert {result.error.code for result in results if result.error} == {"NOT_FOUND"}


@pytest.mark.parametrize("path", ["a/inside", "a/inside/x"])
def test_a_link_to_a_place_inside_is_not_followed(linked: Path, path: str) -> None:
    assert not any(result.success for result in all_tools(path))
    assert (linked / "a" / "b.txt").read_text() == "b"


def test_lists_and_searches_skip_links(linked: Path) -> None:
    listed = run_tool(ListFiles, {"recursive": True}).data
    assert [entry["path"] for entry in listed["entries"]] == ["a", "a/b.txt"]
    assert listed["passed_over"] == 16
    assert run_tool(SearchFiles, {"pattern": "."}).data["hits"] == [
        {"path": "a/b.txt", "line": 1, "text": "b"}
    ]


def test_deleting_a_folder_keeps_its_links_and_their_targets(linked: Path, outside: Path) -> None:
    assert run_tool(DeleteFile, {"path": "a"}).data == {"deleted": ["a/b.txt"]}
    assert (outside / "secret.txt").read_text() == SECRET
    assert (linked / "a" / "link").is_symlink()


def test_a_hard_link_to_a_file_outside_is_neither_read_nor_overwritten(
    folder: Path, outside: Path
) -> None:
    os.link(outside / "secret.txt", folder / "hard.txt")
    results = all_tools("hard.txt")
    assert_nothing_told(results)
    assert not any(result.success and result.data.get("hits") for result in results)
    assert (outside / "secret.txt").read_text() == SECRET
    assert (folder / "hard.txt").stat().st_nlink == 2


def test_an_organization_folder_that_is_itself_a_link_is_not_entered(
    folder: Path, outside: Path
) -> None:
    moved = folder.with_name("moved")
    folder.rename(moved)
    folder.symlink_to(outside)
    try:
        assert_nothing_told(all_tools("secret.txt"))
        assert not run_tool(ListFiles, {}).success
    finally:
        folder.unlink()
        moved.rename(folder)


# Things that are not ordinary files


def test_pipes_sockets_and_devices_are_refused_immediately(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    here = Path.cwd()
    os.chdir(folder)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        os.chdir(here)
        names = ["pipe", "socket"]
        if os.geteuid() == 0:
            os.mknod(folder / "zero", 0o600 | 0o020000, os.makedev(1, 5))
            names.append("zero")
        for name in names:
            results = all_tools(name)
            assert [result.success for result in results[1:]] == [False] * 4, name
            assert {r.error.code for r in results[3:] if r.error} == {"OPERATION_NOT_ALLOWED"}
    assert run_tool(ListFiles, {}).data["passed_over"] == len(names)
    assert run_tool(SearchFiles, {"pattern": "."}).data["searched"] == 1


# A link that appears and disappears


ROUNDS = 1_000


def test_a_folder_swapped_for_a_link_meanwhile_is_not_followed(folder: Path, outside: Path) -> None:
    (folder / "b").mkdir()
    (folder / "b" / "secret.txt").write_text("inside")
    stop = threading.Event()

    def swap() -> None:
        real, link, parked = folder / "b", folder / "link", folder / "parked"
        link.symlink_to(outside)
        for number in itertools.count():
            if stop.is_set():
                return
            real.rename(parked)
            with suppress(OSError):  # a writer has created the folder again
                link.rename(real)
                real.rename(link)
            while parked.exists():
                try:
                    parked.rename(real)
                except OSError:
                    real.rename(folder / f"made-anew-{number}")

    swapper = threading.Thread(target=swap)
    swapper.start()
    read = 0
    try:
        for number in range(ROUNDS):
            result = run_tool(ReadFile, {"path": "b/secret.txt"})
            read += result.success
            assert_nothing_told([result])
            if number % 10 == 0:
                written = run_tool(WriteFile, {"path": "b/new.txt", "text": str(number)})
                assert_nothing_told([written, run_tool(SearchFiles, {"pattern": "secret"})])
                run_tool(DeleteFile, {"path": "b/new.txt"})
    finally:
        stop.set()
        swapper.join()
    assert 0 < read <= ROUNDS
    assert not (outside / "new.txt").exists()


def test_a_file_swapped_for_a_link_meanwhile_is_not_followed(folder: Path, outside: Path) -> None:
    stop = threading.Event()

    def swap() -> None:
        fresh = folder / "fresh"
        while not stop.is_set():
            fresh.write_text("inside")
            fresh.rename(folder / "target.txt")
            fresh.symlink_to(outside / "secret.txt")
            fresh.rename(folder / "target.txt")

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for number in range(ROUNDS):
            assert_nothing_told([run_tool(ReadFile, {"path": "target.txt"})])
            if number % 10 == 0:
                assert_nothing_told(
                    [run_tool(WriteFile, {"path": "target.txt", "text": str(number)})]
                )
    finally:
        stop.set()
        swapper.join()
    assert (outside / "secret.txt").read_text() == SECRET


def test_a_refused_path_is_explained_and_quoted_safely() -> None:
    with pytest.raises(ToolError) as caught:
        parse_path("a/\u202e" + "x" * 1_000)
    assert "\\u202e" in caught.value.message
    assert len(caught.value.message) < 400
