"""Edge cases of the files.* tools: paths through files, folders that stay, failures halfway, cut
lines."""

from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from tools.contract import ErrorCode, Tool, ToolContext, ToolError
from tools.office.files import changes
from tools.office.files.changes import delete_files, write_file
from tools.office.files.searching import SEARCHED_BYTES_PER_LINE
from tools.office.tools.file_display import format_code_block
from tools.office.tools.files import DeleteFile, SearchFiles, WriteFile
from tools.testing import run_tool

pytestmark = pytest.mark.once


@pytest.fixture
def folder(tmp_path: Path, settings: Settings) -> Path:
    """The folder of organization 1."""
    settings.GADGET_FILES_DIR = tmp_path
    (tmp_path / "1").mkdir()
    return tmp_path / "1"


def sentence_of(tool: type[Tool], **params: Any) -> str:
    """Return the card's sentence, or raise the error that the card would show."""
    made = tool()
    given = made.load_params(made.check_params(params))
    preview = made.preview(given, ToolContext(organization_id=1))
    assert preview is not None
    return made.sentence(given, preview)


def code_of(tool: type[Tool], **params: Any) -> str:
    with pytest.raises(ToolError) as caught:
        sentence_of(tool, **params)
    return str(caught.value.code)


class TestThePathToAFile:
    @pytest.fixture(autouse=True)
    def way(self, folder: Path) -> None:
        (folder / "notes.txt").write_text("a file")
        (folder / "link").symlink_to("/tmp")
        (folder / "dangling").symlink_to("nowhere")

    @pytest.mark.parametrize(
        "path", ["notes.txt/sub.md", "notes.txt/a/sub.md", "link/sub.md", "dangling/a/sub.md"]
    )
    def test_that_leads_through_another_file_is_refused_before_approval(self, path: str) -> None:
        assert code_of(WriteFile, path=path, text="x") == "NOT_FOUND"
        asked: list[object] = []
        with pytest.raises(ToolError) as caught:
            write_file(1, tuple(path.split("/")), [b"x"], asked.append)
        assert (caught.value.code, caught.value.is_definite, asked) == (
            ErrorCode.NOT_FOUND,
            True,
            [],
        )

    def test_gets_its_folders_during_the_write_and_loses_them_if_the_write_is_refused(
        self, folder: Path
    ) -> None:
        (folder / "a").mkdir()
        before = sorted(folder.rglob("*"))

        def refuse(_: object) -> None:
            assert (folder / "a" / "b" / "c").is_dir()
            raise ToolError(ErrorCode.OPERATION_FAILED, "No.", attempted=False)

        with pytest.raises(ToolError, match="No"):
            write_file(1, ("a", "b", "c", "d.txt"), [b"x"], refuse)
        assert sorted(folder.rglob("*")) == before

    @pytest.mark.parametrize(
        ("name", "value"), [("MAX_FILES", 1), ("MAX_BYTES", 8), ("LARGEST_FILE", 4)]
    )
    def test_that_exceeds_the_limits_is_refused_before_approval(
        self, monkeypatch: pytest.MonkeyPatch, name: str, value: int
    ) -> None:
        monkeypatch.setattr(changes, name, value)
        assert code_of(WriteFile, path="new.txt", text="12345") == "LIMIT_EXCEEDED"

    def test_can_have_missing_folders(self) -> None:
        assert sentence_of(WriteFile, path="x/y/z.md", text="x").startswith(
            "Create file **x/y/z.md**"
        )


class TestDeletion:
    def test_keeps_a_folder_that_contains_only_a_link_and_says_so(self, folder: Path) -> None:
        (folder / "a" / "b").mkdir(parents=True)
        (folder / "a" / "b" / "link").symlink_to("/tmp")
        assert code_of(DeleteFile, path="a") == "OPERATION_FAILED"
        result = run_tool(DeleteFile, {"path": "a"})
        assert result.error is not None
        assert (result.error.code, result.error.is_definite) == ("OPERATION_FAILED", True)
        assert (
            "'a' was not deleted: it contains only entries that cannot be deleted"
            in result.for_model()
        )

    def test_reports_only_what_was_deleted(self, folder: Path) -> None:
        for name in ("empty", "linked"):
            (folder / "a" / name).mkdir(parents=True)
        (folder / "a" / "linked" / "link").symlink_to("/tmp")
        assert run_tool(DeleteFile, {"path": "a"}).data == {"deleted": ["a/empty"]}
        assert [one.name for one in (folder / "a").iterdir()] == ["linked"]

    def test_keeps_a_folder_that_is_filled_at_the_last_moment_and_says_so(
        self, folder: Path
    ) -> None:
        (folder / "a").mkdir()
        with pytest.raises(ToolError, match="'a' was not deleted") as caught:
            delete_files(1, ("a",), lambda _: (folder / "a" / "link").symlink_to("/tmp"))
        assert caught.value.is_definite

    @pytest.mark.parametrize(
        ("gone", "is_definite"), [("a/1", True), ("a/2", False), ("a/b", False)]
    )
    def test_has_a_definite_failure_only_before_the_first_file_is_deleted(
        self, folder: Path, gone: str, is_definite: bool
    ) -> None:
        (folder / "a" / "b").mkdir(parents=True)
        for path in ("a/1", "a/2", "a/b/3"):
            (folder / path).touch()

        def lose(_: object) -> None:
            (folder / gone).rename(folder / "elsewhere")

        with pytest.raises(ToolError) as caught:
            delete_files(1, ("a",), lose)
        assert caught.value.is_definite is is_definite
        assert (folder / "a" / "1").exists() is False
        assert ("'a' was not deleted" if is_definite else "of 3 files in 'a' were deleted") in str(
            caught.value
        )

    def test_has_a_sentence_that_says_file_or_folder(self, folder: Path) -> None:
        (folder / "e").mkdir()
        (folder / "f").mkdir()
        for path in ("\u00e9.txt", "f/one.txt"):
            (folder / path).touch()
        assert sentence_of(DeleteFile, path="e") == "Permanently delete empty folder **e**"
        assert sentence_of(DeleteFile, path="e\u0301.txt").startswith("Permanently delete file **")
        assert (
            sentence_of(DeleteFile, path="f")
            == "Permanently delete folder **f** with all its contents: 1 file"
        )


@pytest.mark.parametrize(
    "text", ["a\n  ````\nb", "a\r````\nb", "inline ```` here", "\t````", "> ````"]
)
def test_backticks_in_a_text_cannot_end_its_code_block(text: str) -> None:
    assert format_code_block(text) == f"`````\n{text}\n`````"


def test_a_code_block_has_at_least_three_backticks() -> None:
    assert format_code_block("a `b` c") == "```\na `b` c\n```"


class TestSearchInFiles:
    @pytest.mark.parametrize(
        ("pattern", "lines"), [("b$", [1]), (r"c\z", [3]), ("^$", [2]), (r"\s", [])]
    )
    def test_excludes_the_carriage_return_from_a_line(
        self, folder: Path, pattern: str, lines: list[int]
    ) -> None:
        (folder / "a.txt").write_bytes(b"ab\r\n\r\nc\r\n")
        hits = run_tool(SearchFiles, {"pattern": pattern}).data["hits"]
        assert [hit["line"] for hit in hits] == lines

    @pytest.mark.parametrize("pattern", ["x$", r"x\z", r"x\b", "needle"])
    def test_does_not_match_the_end_of_a_cut_line(self, folder: Path, pattern: str) -> None:
        (folder / "a.txt").write_text("x" * (SEARCHED_BYTES_PER_LINE + 5) + " needle")
        result = run_tool(SearchFiles, {"pattern": pattern})
        assert result.data == {"hits": [], "searched": 0, "passed_over": 0, "left_out": 1}
        assert "1 file not searched to the end" in result.summary

    def test_covers_a_line_of_exactly_the_limit(self, folder: Path) -> None:
        (folder / "a.txt").write_bytes(b"x" * SEARCHED_BYTES_PER_LINE + b"\r\n")
        found = run_tool(SearchFiles, {"pattern": "x$"}).data
        assert (len(found["hits"]), found["searched"]) == (1, 1)
