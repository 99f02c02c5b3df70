"""Tools of the category files: the organisation's own folder, and nothing outside of it."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from tools.contract import ErrorCode, Level, Preview, Target, Tool, ToolContext, ToolError, ToolResult
from tools.files.changing import LARGEST_FILE, Staged, check_writable, delete, doomed_at, write_file
from tools.files.contents import LARGEST_TEXT, Content, content_of, kind_of, text_of
from tools.files.folder import Entry, Listing, entry_at, listing_of, open_file, tree_of
from tools.files.paths import LONGEST_PATH, Names, file_names_of, names_of, path_of, quoted
from tools.files.searching import LONGEST_PATTERN, Search, compiled, search

from .data_base import nothing_to_do
from .data_words import bold
from .files_words import EMPTY_FOLDER, as_block, changed_at, counted, page_of_lines, size_in_words, what_is_left_out
from .outputs import FileEntries, FileHits, FileText

MOST_LISTED = 1_000
MOST_LINES = 2_000
MOST_HITS = 500

FolderPath = Annotated[str, Field(max_length=LONGEST_PATH, examples=["reports/2026"])]
FilePath = Annotated[str, Field(min_length=1, max_length=LONGEST_PATH, examples=["reports/2026/summary.md"])]


class ListFiles(Tool):
    """data: {entries: [{path, kind: file or folder, size, changed}], total, passed_over}; sizes in bytes."""

    name = "files.list"
    display_name = "List files"
    description = (
        "List the files and folders of your organisation's own folder, or of one folder in it. "
        "Paths are relative to it, with '/' between names."
    )
    level = Level.READ
    Output = FileEntries

    class Params(BaseModel):
        path: FolderPath = Field("", description="The folder; left out: all of your organisation's folder")
        recursive: bool = Field(default=False, description="Also what the folders in it hold")
        limit: int = Field(200, ge=1, le=MOST_LISTED, description="At most so many entries")

    def validate(self, params: Params) -> None:
        names_of(params.path)

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        look: Any = tree_of if params.recursive else listing_of
        listing: Listing = look(context.organization_id, names_of(params.path))
        total = len(listing.entries)
        entries = [_row(entry) for entry in listing.entries[: params.limit]]
        data = {"entries": entries, "total": total, "passed_over": listing.passed_over}
        where = f" in {params.path}" if params.path else ""
        shortened = f", the first {params.limit:,} shown" if total > params.limit else ""
        return ToolResult.ok(data, f"Found {counted(total, 'entry', 'entries')}{where}{shortened}")


class ReadFile(Tool):
    """data: {path, text, first_line, last_line, total_lines, next_offset}; next_offset is None at the end."""

    name = "files.read"
    display_name = "Read a file"
    description = "Read a text file of your organisation's folder, or some of its lines."
    level = Level.READ
    Output = FileText

    class Params(BaseModel):
        path: FilePath = Field(description="The file, e.g. reports/2026/summary.md")
        offset: int = Field(1, ge=1, le=LARGEST_FILE, description="The first line to read; lines count from 1")
        limit: int = Field(500, ge=1, le=MOST_LINES, description="At most so many lines")

    def validate(self, params: Params) -> None:
        file_names_of(params.path)

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        text = _text_at(context.organization_id, file_names_of(params.path))
        page = page_of_lines(text, params.offset, params.limit)
        data = {"path": params.path, **page.as_data()}
        told = f"{params.path}, {page.in_words}"
        return ToolResult.ok(data, f"Read {told}", f"{told}:\n\n{as_block(page.text)}")


class SearchFiles(Tool):
    """data: {hits: [{path, line, text}], searched, passed_over, left_out}; the last three count files."""

    name = "files.grep"
    display_name = "Search in files"
    description = (
        "Search the lines of text files in your organisation's folder for a regular expression (RE2: no "
        "backreferences, no look-around). ^ and $ are the start and the end of a line."
    )
    level = Level.READ
    Output = FileHits

    class Params(BaseModel):
        pattern: str = Field(
            min_length=1, max_length=LONGEST_PATTERN, description=r"What to look for, e.g. invoice \d{4}"
        )
        path: FolderPath = Field("", description="A file, or a folder with all in it; left out: everything")
        ignore_case: bool = Field(default=False, description="Whether capital and small letters are the same")
        limit: int = Field(100, ge=1, le=MOST_HITS, description="At most so many lines")

    def validate(self, params: Params) -> None:
        names_of(params.path)
        compiled(params.pattern)

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        found = Search(params.limit)
        wanted = compiled(params.pattern, ignore_case=params.ignore_case)
        search(context.organization_id, names_of(params.path), wanted, found)
        hits = [{"path": hit.path, "line": hit.line, "text": hit.text} for hit in found.hits]
        counts = {"searched": found.searched, "passed_over": found.passed_over, "left_out": found.left_out}
        summary = f"Found {counted(len(hits), 'line', 'lines')} in {counted(found.searched, 'file', 'files')}"
        return ToolResult.ok({"hits": hits, **counts}, summary + what_is_left_out(found))


class WriteFile(Tool):
    """data: {path, size, sha256, created}; size in bytes."""

    name = "files.write"
    display_name = "Write a file"
    description = (
        "Create a text file in your organisation's folder, or replace one as a whole. Missing folders are made. "
        "Read the file first if it may be there already."
    )
    level = Level.WRITE
    idempotent = True

    class Params(BaseModel):
        path: FilePath = Field(description="The file, e.g. reports/2026/summary.md")
        text: str = Field(max_length=LARGEST_TEXT, description="All of the file's text, at most 1 MB")

    def validate(self, params: Params) -> None:
        file_names_of(params.path)
        if len(params.text.encode("utf-8")) > LARGEST_TEXT:
            raise ToolError(
                ErrorCode.LIMIT_EXCEEDED,
                "'text' is more than 1 MB.",
                parameter="text",
                expected=f"text of at most {LARGEST_TEXT:,} bytes in UTF-8",
                attempted=False,
            )

    def preview(self, params: Params, context: ToolContext) -> Preview:
        effect = self._effect(params, context)
        size = len(params.text.encode("utf-8"))
        check_writable(context.organization_id, file_names_of(params.path), size)
        return effect

    def _effect(self, params: Params, context: ToolContext) -> Preview:
        names = file_names_of(params.path)
        now = _content_at(context.organization_id, names)
        if now is not None and now.text == params.text:
            raise nothing_to_do(f"{quoted(params.path)} holds this text already.")
        after = {"content": params.text}
        if now is None:
            return Preview("create", (Target("", "/".join(names), after=after),))
        target = Target("", "/".join(names), before={"content": now.in_words}, after=after)
        return Preview("replace", (target,), reversible=False)

    def sentence(self, params: Params, preview: Preview) -> str:
        verb = "Create" if preview.effect == "create" else "Replace"
        size = len(params.text.encode("utf-8"))
        lines = counted(len(params.text.splitlines()), "line", "lines")
        return f"{verb} file {bold(params.path)} with {lines} of text ({counted(size, 'byte', 'bytes')})"

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        names, data = file_names_of(params.path), params.text.encode("utf-8")
        there = _content_at(context.organization_id, names)
        if there is not None and there.text == params.text:
            return _written(params.path, "There already:", there)

        def agree(_: Staged) -> None:
            require_seal(self._effect(params, context), context)

        staged = write_file(context.organization_id, names, [data], agree)
        return _written(params.path, "Replaced" if staged.replaces else "Created", staged)


class DeleteFile(Tool):
    """data: {deleted: [path]}."""

    name = "files.delete"
    display_name = "Delete files"
    description = "Delete a file of your organisation's folder, or a folder with all that it holds. For good."
    level = Level.DESTRUCTIVE
    idempotent = True

    class Params(BaseModel):
        path: FilePath = Field(description="The file or folder, e.g. reports/2026")

    def validate(self, params: Params) -> None:
        file_names_of(params.path)

    def preview(self, params: Params, context: ToolContext) -> Preview:
        return _deletion(doomed_at(context.organization_id, file_names_of(params.path)))

    def sentence(self, params: Params, preview: Preview) -> str:
        if [target.label for target in preview.targets] == [path_of(file_names_of(params.path))]:
            noun = "empty folder" if preview.targets[0].before["size"] == EMPTY_FOLDER else "file"
            return f"Delete {noun} {bold(params.path)} for good"
        inside = f": {counted(preview.total, 'file', 'files')}" if preview.total else ""
        return f"Delete folder {bold(params.path)} with all that it holds{inside}, for good"

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        def agree(doomed: tuple[Entry, ...]) -> None:
            require_seal(_deletion(doomed), context)

        doomed = delete(context.organization_id, file_names_of(params.path), agree)
        deleted = [entry.path for entry in doomed]
        what = deleted[0] if len(deleted) == 1 else f"{len(deleted):,} files"
        return ToolResult.ok({"deleted": deleted}, f"Deleted {what}")


def require_seal(effect: Preview, context: ToolContext) -> None:
    """Refuse if the effect is not the one that the person approved.

    Raises:
        ToolError: OPERATION_FAILED
    """
    sealed = context.preview
    if sealed is not None and not sealed.problem and sealed.seal != effect.seal:
        raise ToolError(
            ErrorCode.OPERATION_FAILED,
            "The file changed in the moment before the start; nothing was done.",
            recovery_hint="Look at it again, and ask again if it is still needed.",
            attempted=False,
        )


def _row(entry: Entry) -> dict[str, Any]:
    kind = "folder" if entry.is_folder else "file"
    return {"path": entry.path, "kind": kind, "size": entry.size, "changed": changed_at(entry)}


def _text_at(organization_id: int, names: Names) -> str:
    with open_file(organization_id, names) as file:
        data = file.read(LARGEST_FILE + 1)
        size = file.seek(0, 2)
    text = text_of(data) if size <= LARGEST_FILE else None
    if text is not None:
        return text
    too_large = f", and more than {LARGEST_FILE // 1_000_000} MB cannot be read" if size > LARGEST_FILE else ""
    raise ToolError(
        ErrorCode.INVALID_OPERATION,
        f"{quoted('/'.join(names))} cannot be read as text: it is {kind_of(data)} of {size:,} bytes{too_large}.",
        parameter="path",
        expected="a text file in UTF-8",
        attempted=False,
    )


def _content_at(organization_id: int, names: Names) -> Content | None:
    """What the file holds; None if there is none, and a refusal if something else is there."""
    entry = entry_at(organization_id, names)
    if entry is None:
        return None
    with open_file(organization_id, names) as file:
        return content_of(file)


def _deletion(doomed: tuple[Entry, ...]) -> Preview:
    targets = tuple(
        Target("", entry.path, version=entry.changed_ns, before={"size": size_in_words(entry)}) for entry in doomed
    )
    return Preview("delete", targets, reversible=False)


def _written(path: str, verb: str, what: Content | Staged) -> ToolResult:
    data = {"path": path, "size": what.size, "sha256": what.sha256, "created": verb == "Created"}
    return ToolResult.ok(data, f"{verb} {path} ({counted(what.size, 'byte', 'bytes')})")
