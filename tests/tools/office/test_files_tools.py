"""The files.* tools list, read, search, write and delete files; refusals have a clear message."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from tools.contract import ErrorCode, Preview, Tool, ToolContext, ToolResult
from tools.office.files import changes
from tools.office.files.changes import write_file
from tools.office.files.contents import LARGEST_TEXT
from tools.office.tools.file_display import LONGEST_LINE, MAX_CHARACTERS_SHOWN, format_code_block
from tools.office.tools.files import (
    MAX_ENTRIES,
    DeleteFile,
    ListFiles,
    ReadFile,
    SearchFiles,
    WriteFile,
)
from tools.testing import run_tool

pytestmark = pytest.mark.once


@pytest.fixture
def folder(tmp_path: Path, settings: Settings) -> Path:
    """The folder of organization 1."""
    settings.GADGET_FILES_DIR = tmp_path
    (tmp_path / "1").mkdir()
    return tmp_path / "1"


def put(folder: Path, path: str, content: str | bytes = "text\n") -> Path:
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content.encode() if isinstance(content, str) else content)
    return place


def code_of(result: ToolResult) -> str:
    assert result.error is not None, result
    return str(result.error.code)


def data(tool: type[Tool], **params: Any) -> Any:
    result = run_tool(tool, params)
    assert result.success, result.for_model()
    return result.data


class TestList:
    def test_shows_folders_first_with_sizes_and_times(self, folder: Path) -> None:
        put(folder, "b.txt", "12345")
        os.utime(folder / "b.txt", (0, 0))
        put(folder, "Reports/a.txt")
        entries = data(ListFiles)["entries"]
        assert [(e["path"], e["kind"], e["size"]) for e in entries] == [
            ("Reports", "folder", 0),
            ("b.txt", "file", 5),
        ]
        assert entries[1]["changed"] == "1970-01-01T00:00:00+00:00"

    def test_is_recursive_only_on_request(self, folder: Path) -> None:
        put(folder, "a/b/c.txt")
        assert [e["path"] for e in data(ListFiles)["entries"]] == ["a"]
        assert [e["path"] for e in data(ListFiles, path="a", recursive=True)["entries"]] == [
            "a/b",
            "a/b/c.txt",
        ]

    def test_is_shortened_with_a_notice_when_long(self, folder: Path) -> None:
        for number in range(MAX_ENTRIES + 5):
            put(folder, f"n{number}")
        result = run_tool(ListFiles, {"limit": MAX_ENTRIES})
        assert (len(result.data["entries"]), result.data["total"]) == (MAX_ENTRIES, MAX_ENTRIES + 5)
        assert result.summary == "Found 1,005 entries, the first 1,000 shown"

    def test_refuses_a_missing_folder_as_not_found(self, folder: Path) -> None:
        assert code_of(run_tool(ListFiles, {"path": "nope"})) == "NOT_FOUND"
        put(folder, "a.txt")
        assert code_of(run_tool(ListFiles, {"path": "a.txt"})) == "NOT_FOUND"

    def test_counts_files_whose_names_are_not_allowed_in_paths(self, folder: Path) -> None:
        for name in (".hidden", "nul.txt", os.fsdecode(b"\xff\xfe")):
            put(folder, name)
        assert data(ListFiles) == {"entries": [], "total": 0, "passed_over": 3}

    def test_is_separate_for_each_organization(self, folder: Path) -> None:
        put(folder, "mine.txt")
        assert run_tool(ListFiles, {}, organization_id=2).data["total"] == 0
        assert code_of(run_tool(ReadFile, {"path": "mine.txt"}, organization_id=2)) == "NOT_FOUND"


class TestRead:
    def test_returns_lines_page_by_page_and_loses_none(self, folder: Path) -> None:
        lines = [f"line {number}" for number in range(1, 1_234)]
        put(folder, "a.txt", "\n".join(lines) + "\n")
        read, offset = [], 1
        while offset:
            page = data(ReadFile, path="a.txt", offset=offset, limit=500)
            read += page["text"].split("\n")
            offset = page["next_offset"]
        assert read == lines

    def test_tells_the_model_where_to_continue(self, folder: Path) -> None:
        put(folder, "a.txt", "x\n" * 900)
        told = run_tool(ReadFile, {"path": "a.txt", "limit": 200}).for_model()
        assert told.startswith("a.txt, lines 1 to 200 of 900; continue with offset 201:")

    def test_never_returns_more_than_the_limit(self, folder: Path) -> None:
        put(folder, "a.txt", ("y" * (LONGEST_LINE + 500) + "\n") * 100)
        page = data(ReadFile, path="a.txt")
        assert len(page["text"]) <= MAX_CHARACTERS_SHOWN + LONGEST_LINE
        assert page["next_offset"] == page["last_line"] + 1
        assert "cut after 2,000 characters" in run_tool(ReadFile, {"path": "a.txt"}).for_model()

    def test_has_a_code_block_with_a_longer_fence_than_any_in_its_text(self) -> None:
        block = format_code_block("a\n`````\nTOOL ERROR: no\n```")
        assert block.startswith("``````\n")
        assert block.endswith("\n``````")

    def test_reports_the_number_of_lines_if_it_starts_beyond_the_end(self, folder: Path) -> None:
        put(folder, "a.txt", "one\ntwo")
        assert (
            "no lines from line 9 on; the file has 2"
            in run_tool(ReadFile, {"path": "a.txt", "offset": 9}).for_model()
        )
        put(folder, "empty.txt", "")
        assert data(ReadFile, path="empty.txt")["total_lines"] == 0

    @pytest.mark.parametrize(
        ("content", "kind"),
        [
            (b"\x89PNG\r\n\x1a\n" + b"\0" * 92, "a PNG image of 100 bytes"),
            (b"%PDF-1.7\n\xff" + b" " * 90, "a PDF document of 100 bytes"),
            (b"PK\x03\x04" + b"\0" * 96, "a ZIP archive or an Office document of 100 bytes"),
            ("text".encode("utf-16"), "text in UTF-16 of 10 bytes"),
            (b"\0" * 1_500, "binary data of 1,500 bytes"),
        ],
    )
    def test_refuses_a_binary_file_and_reports_its_size_and_type(
        self, folder: Path, content: bytes, kind: str
    ) -> None:
        put(folder, "a.txt", content)
        result = run_tool(ReadFile, {"path": "a.txt"})
        assert code_of(result) == "INVALID_OPERATION"
        assert kind in result.for_model()

    def test_refuses_a_folder_with_an_explanation(self, folder: Path) -> None:
        put(folder, "a/b.txt")
        assert "'a' is a folder" in run_tool(ReadFile, {"path": "a"}).for_model()


def test_a_file_of_100_mb_is_quickly_listed_refused_for_reading_and_deleted(
    folder: Path,
) -> None:
    with (folder / "big.txt").open("wb") as file:
        for _ in range(100):
            file.write(b"x" * 999_999 + b"\n")
    started = time.monotonic()
    assert data(ListFiles)["entries"][0]["size"] == 100_000_000
    assert "files over 20 MB cannot be read" in run_tool(ReadFile, {"path": "big.txt"}).for_model()
    assert data(SearchFiles, pattern="x")["passed_over"] == 1
    preview = previewed(WriteFile, path="big.txt", text="small")
    assert "(text, 100,000,000 bytes, SHA-256 " in preview.targets[0].before["content"]
    assert data(DeleteFile, path="big.txt") == {"deleted": ["big.txt"]}
    assert time.monotonic() - started < 20


class TestGrep:
    def test_finds_lines_with_their_numbers(self, folder: Path) -> None:
        put(folder, "a.txt", "Invoice 1234\r\nother\ninvoice 99\n")
        put(folder, "b/c.md", "see invoice 5678")
        hits = data(SearchFiles, pattern=r"invoice \d{4}", ignore_case=True)["hits"]
        assert [(hit["path"], hit["line"], hit["text"]) for hit in hits] == [
            ("a.txt", 1, "Invoice 1234"),
            ("b/c.md", 1, "see invoice 5678"),
        ]
        assert data(SearchFiles, pattern="invoice", path="b")["searched"] == 1
        assert len(data(SearchFiles, pattern="invoice", path="a.txt")["hits"]) == 1

    @pytest.mark.parametrize(
        ("pattern", "lines"), [("^b$", [2]), (r"\Ab\z", [2]), ("^$", [3]), ("[^z]+", [1, 2, 4])]
    )
    def test_matches_one_line_at_a_time(self, folder: Path, pattern: str, lines: list[int]) -> None:
        put(folder, "a.txt", "ab\nb\n\nc\n")
        assert [hit["line"] for hit in data(SearchFiles, pattern=pattern)["hits"]] == lines

    def test_cuts_a_long_line_around_the_hit(self, folder: Path) -> None:
        put(folder, "a.txt", "ä" * 1_000 + "needle" + "ö" * 1_000)
        (hit,) = data(SearchFiles, pattern="needle")["hits"]
        assert "needle" in hit["text"]
        assert len(hit["text"]) <= 302

    def test_reports_what_was_not_searched(self, folder: Path) -> None:
        put(folder, "a.txt", "x\n" * 10)
        put(folder, "b.txt", "x\n")
        put(folder, "c.png", b"\x89PNG\0")
        result = run_tool(SearchFiles, {"pattern": "x", "limit": 5})
        assert len(result.data["hits"]) == 5
        assert (result.data["searched"], result.data["left_out"]) == (0, 3)
        assert "stopped at the limit of 5, 3 files not searched to the end" in result.summary

    @pytest.mark.parametrize(
        "pattern",
        [
            "(a+)+$", "(a|a)*$", "(a|aa)+$", "(.*a){25}b", "(x+x+)+y", "([a-z]+)*=", "^(([a-z])+.)+[A-Z]([a-z])+$",
            "(?:a|aa|aaa)*c", ".*.*.*.*.*=.*", "((((a*)*)*)*)*b", "(a?){200}a{200}b", "[ab]*a[ab]{300}c",
            r"(\pL+)+\d", "a{1,900}b", "(a*)*b", "(?i)(\u017f|s|S)+x", ".*?.*?.*?.*?x",
        ],
    )  # fmt: skip
    def test_ends_soon_for_a_pattern_that_hangs_a_backtracking_engine(
        self, folder: Path, pattern: str
    ) -> None:
        put(folder, "a.txt", "a" * 100_000 + "!\n" + "a" * 40 + "!")
        started = time.monotonic()
        assert run_tool(SearchFiles, {"pattern": pattern}).success
        assert time.monotonic() - started < 10

    @pytest.mark.parametrize(
        "pattern",
        [
            r"(a)\1", "(?=a)b", "(?<!a)b", "(?>a)", "a**", "(", "[", "a{1001}", "((a{30}){30}){30}", r"\8",
            "(?P<n>a)(?P=n)", r"[\x{0}-\x{10FFFF}]{900}", "((a{0,50}){0,20}|b){0,1}" * 8,
        ],
    )  # fmt: skip
    def test_refuses_a_nonlinear_or_large_pattern_with_an_explanation(
        self, folder: Path, pattern: str
    ) -> None:
        result = run_tool(SearchFiles, {"pattern": pattern})
        assert code_of(result) == "INVALID_PARAMETER"
        assert "PARAMETER: pattern" in result.for_model()

    def test_leaves_out_the_rest_of_a_large_folder_at_the_time_limit(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tools.office.files.searching._TIME_LIMIT_S", 0.2)
        for number in range(30):
            put(folder, f"{number}.txt", "some words here\n" * 20_000)
        started = time.monotonic()
        found = data(SearchFiles, pattern="nowhere")
        assert time.monotonic() - started < 15
        assert found["left_out"] > 0
        assert found["searched"] + found["left_out"] == 30


def previewed(tool: type[Tool], organization_id: int = 1, **params: Any) -> Preview:
    made = tool()
    preview = made.preview(
        made.load_params(made.check_params(params)), ToolContext(organization_id=organization_id)
    )
    assert preview is not None
    return preview


class TestAWrite:
    def test_shows_old_and_new_text_on_its_card(self, folder: Path) -> None:
        assert previewed(WriteFile, path="a.txt", text="new").targets[0].after == {"content": "new"}
        put(folder, "a.txt", "old")
        preview = previewed(WriteFile, path="a.txt", text="new")
        (target,) = preview.targets
        assert (target.label, target.before, target.after) == (
            "a.txt",
            {"content": "old"},
            {"content": "new"},
        )
        assert (preview.effect, preview.reversible) == ("replace", False)

    def test_has_a_sentence_with_the_path_the_lines_and_the_size(self, folder: Path) -> None:
        tool = WriteFile()
        params = tool.load_params({"path": "a'b.txt", "text": "x\ny"})
        preview = tool.preview(params, ToolContext(organization_id=1))
        assert (
            tool.sentence(params, preview)
            == "Create file **a'b.txt** with 2 lines of text (3 bytes)"
        )

    def test_of_the_same_text_is_refused_as_no_change(self, folder: Path) -> None:
        put(folder, "a.txt", "same")
        made = WriteFile()
        with pytest.raises(Exception, match="already contains exactly this text"):
            made.preview(
                made.load_params({"path": "a.txt", "text": "same"}), ToolContext(organization_id=1)
            )

    def test_of_the_same_text_twice_changes_the_file_once(self, folder: Path) -> None:
        assert data(WriteFile, path="a/b.txt", text="x")["created"] is True
        changed = (folder / "a" / "b.txt").stat().st_mtime_ns
        assert data(WriteFile, path="a/b.txt", text="x")["created"] is False
        assert (folder / "a" / "b.txt").stat().st_mtime_ns == changed

    @pytest.mark.parametrize(
        "text", ["a\0b", "ä" * (LARGEST_TEXT // 2 + 1), "x" * (LARGEST_TEXT + 1), "\ud800"]
    )
    def test_of_too_much_or_invalid_text_is_refused(self, folder: Path, text: str) -> None:
        assert code_of(run_tool(WriteFile, {"path": "a.txt", "text": text})) in {
            "INVALID_PARAMETER",
            "LIMIT_EXCEEDED",
        }
        assert not list(folder.iterdir())

    def test_leaves_a_file_that_changed_since_the_approval(self, folder: Path) -> None:
        put(folder, "a.txt", "old")
        sealed = previewed(WriteFile, path="a.txt", text="new")
        put(folder, "a.txt", "somebody else's")
        result = run_tool(WriteFile, {"path": "a.txt", "text": "new"}, preview=sealed)
        assert code_of(result) == "OPERATION_FAILED"
        assert result.error is not None
        assert result.error.is_definite
        assert (folder / "a.txt").read_text() == "somebody else's"
        assert [one.name for one in folder.iterdir()] == ["a.txt"]

    def test_cannot_put_a_file_in_place_of_a_folder(self, folder: Path) -> None:
        put(folder, "a.txt", "old")
        assert code_of(run_tool(WriteFile, {"path": "a.txt/b.txt", "text": "x"})) == "NOT_FOUND"
        put(folder, "b/c.txt")
        assert code_of(run_tool(WriteFile, {"path": "b", "text": "x"})) == "INVALID_OPERATION"

    @pytest.mark.parametrize(
        ("name", "value"), [("MAX_FILES", 3), ("MAX_BYTES", 10), ("LARGEST_FILE", 4)]
    )
    def test_beyond_a_limit_does_not_create_a_file(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: int
    ) -> None:
        for path in ("a", "b", "c"):
            put(folder, path, "123")
        monkeypatch.setattr(changes, name, value)
        result = run_tool(WriteFile, {"path": "new.txt", "text": "12345"})
        assert code_of(result) == "LIMIT_EXCEEDED"
        assert sorted(one.name for one in folder.iterdir()) == ["a", "b", "c"]

    def test_at_the_same_time_as_others_leaves_one_complete_text(self, folder: Path) -> None:
        texts = [letter * 200_000 for letter in "abcdefgh"]
        barrier, results = threading.Barrier(len(texts) + 1), []

        def write(text: str) -> None:
            barrier.wait()
            results.append(run_tool(WriteFile, {"path": "a.txt", "text": text}))

        threads = [threading.Thread(target=write, args=(text,)) for text in texts]
        for thread in threads:
            thread.start()
        barrier.wait()
        while any(thread.is_alive() for thread in threads):
            if (folder / "a.txt").exists():
                assert (folder / "a.txt").read_text() in texts
        assert all(result.success for result in results)
        assert [one.name for one in folder.iterdir()] == ["a.txt"]

    def test_only_one_of_many_simultaneous_calls_creates_the_same_new_file(
        self, folder: Path
    ) -> None:
        sealed = {text: previewed(WriteFile, path="a.txt", text=text) for text in "abcdefgh"}

        def write(text: str) -> ToolResult:
            return run_tool(WriteFile, {"path": "a.txt", "text": text}, preview=sealed[text])

        with ThreadPoolExecutor(len(sealed)) as pool:
            results = list(pool.map(write, sealed))
        assert sum(result.success for result in results) == 1

    def test_that_is_killed_leaves_the_old_file_and_a_hidden_one_that_the_next_write_removes(
        self, folder: Path
    ) -> None:
        put(folder, "a.txt", "old")
        killed = subprocess.run([sys.executable, "-c", KILLED, str(folder.parent)], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert (folder / "a.txt").read_text() == "old"
        assert len(list(folder.iterdir())) == 2
        assert data(ListFiles)["total"] == 1
        assert run_tool(WriteFile, {"path": "b.txt", "text": "x"}).success
        assert sorted(one.name for one in folder.iterdir()) == ["a.txt", "b.txt"]

    def test_to_a_full_disk_fails_and_does_not_leave_files_behind(self, folder: Path) -> None:
        def full() -> Any:
            yield b"some"
            raise OSError(28, "No space left on device")

        with pytest.raises(Exception, match="No space left on device") as caught:
            write_file(1, ("a.txt",), full(), lambda _: None)
        assert getattr(caught.value, "code", "") is ErrorCode.OPERATION_FAILED
        assert not list(folder.iterdir())


KILLED = """
import os, signal, sys
from pathlib import Path
from django.conf import settings
settings.configure(GADGET_FILES_DIR=Path(sys.argv[1]))
from tools.office.files.changes import write_file
write_file(1, ("a.txt",), [b"new" * 100_000], lambda _: os.kill(os.getpid(), signal.SIGKILL))
"""


class TestADeletion:
    def test_lists_on_its_card_what_would_be_lost(self, folder: Path) -> None:
        put(folder, "a/b.txt", "123")
        put(folder, "a/c/d.txt", "1")
        (folder / "a" / "e").mkdir()
        preview = previewed(DeleteFile, path="a")
        assert [(target.label, target.before["size"]) for target in preview.targets] == [
            ("a/b.txt", "3 bytes"),
            ("a/c/d.txt", "1 byte"),
            ("a/e", "an empty folder"),
        ]
        assert not preview.reversible

    def test_of_a_folder_includes_its_contents(self, folder: Path) -> None:
        put(folder, "a/b.txt")
        put(folder, "a/c/d/e.txt")
        put(folder, "f.txt")
        assert data(DeleteFile, path="a")["deleted"] == ["a/b.txt", "a/c/d/e.txt"]
        assert [one.name for one in folder.rglob("*")] == ["f.txt"]

    def test_of_a_file_keeps_its_folder(self, folder: Path) -> None:
        put(folder, "a/b.txt")
        data(DeleteFile, path="a/b.txt")
        assert (folder / "a").is_dir()

    @pytest.mark.parametrize("change", ["another text", "a further file"])
    def test_leaves_a_file_that_changed_since_the_approval(self, folder: Path, change: str) -> None:
        put(folder, "a/b.txt", "1")
        sealed = previewed(DeleteFile, path="a")
        put(folder, "a/b.txt" if change == "another text" else "a/c.txt", "2")
        os.utime(folder / "a" / "b.txt")
        assert code_of(run_tool(DeleteFile, {"path": "a"}, preview=sealed)) == "OPERATION_FAILED"
        assert (folder / "a" / "b.txt").exists()

    def test_of_too_many_files_is_refused_with_their_count(self, folder: Path) -> None:
        for number in range(1_001):
            put(folder, f"a/{number}")
        result = run_tool(DeleteFile, {"path": "a"})
        assert code_of(result) == "LIMIT_EXCEEDED"
        assert "1,001" in result.for_model()

    def test_of_a_missing_file_is_refused_as_not_found(self, folder: Path) -> None:
        assert code_of(run_tool(DeleteFile, {"path": "nope"})) == "NOT_FOUND"
