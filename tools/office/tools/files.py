"""Tools in the `files` category, limited to the organization's own folder."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from tools.contract import (
    ErrorCode,
    Level,
    NothingToDo,
    Preview,
    Target,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
)
from tools.contract.sentences import format_name
from tools.office.files.changes import (
    LARGEST_FILE,
    check_writable,
    delete_files,
    list_deletions,
    write_file,
)
from tools.office.files.contents import (
    LARGEST_TEXT,
    FileContent,
    decode_text,
    detect_kind,
    read_content,
)
from tools.office.files.folder import find_entry, list_folder, list_tree, open_file
from tools.office.files.paths import LONGEST_PATH, parse_file_path, parse_path, quote_path
from tools.office.files.searching import LONGEST_PATTERN, FileSearch, compile_pattern, search_files
from tools.office.tools.file_display import (
    EMPTY_FOLDER,
    describe_gaps,
    describe_size,
    format_change_time,
    format_code_block,
    format_count,
    take_lines,
)
from tools.office.tools.outputs import DeletedFiles, FileEntries, FileHits, FileText, WrittenFile
from tools.registries.files import FolderEntry, FolderListing, Names, StagedFile, join_path

MAX_ENTRIES = 1_000
MAX_LINES = 2_000
MAX_HITS = 500

FolderPath = Annotated[str, Field(max_length=LONGEST_PATH, examples=["reports/2026"])]
FilePath = Annotated[
    str, Field(min_length=1, max_length=LONGEST_PATH, examples=["reports/2026/summary.md"])
]


class ListFiles(Tool):
    """Result data: {entries: [{path, kind: file or folder, size, changed}], total, passed_over};
    sizes in bytes."""

    name = "files.list"
    display_name = "List files"
    description = (
        "List the files and folders of your organization's own folder, or of one folder in it. "
        "Paths are relative to it, with '/' between names."
    )
    level = Level.READ
    Output = FileEntries

    class Params(BaseModel):
        path: FolderPath = Field(
            "", description="The folder; if omitted, your organization's top folder"
        )
        recursive: bool = Field(default=False, description="Include the contents of subfolders")
        limit: int = Field(200, ge=1, le=MAX_ENTRIES, description="Maximum number of entries")

    def validate(self, params: Params) -> None:
        parse_path(params.path)

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        list_entries: Any = list_tree if params.recursive else list_folder
        listing: FolderListing = list_entries(context.organization_id, parse_path(params.path))
        total = len(listing.entries)
        entries = [_build_row(entry) for entry in listing.entries[: params.limit]]
        data = {"entries": entries, "total": total, "passed_over": listing.passed_over}
        where = f" in {params.path}" if params.path else ""
        shortened = f", the first {params.limit:,} shown" if total > params.limit else ""
        return ToolResult.ok(
            data, f"Found {format_count(total, 'entry', 'entries')}{where}{shortened}"
        )


class ReadFile(Tool):
    """Result data: {path, text, first_line, last_line, total_lines, next_offset}; next_offset is
    None at the end."""

    name = "files.read"
    display_name = "Read a file"
    description = "Read a text file in your organization's folder, or some of its lines."
    level = Level.READ
    returns_outside_text = True
    Output = FileText

    class Params(BaseModel):
        path: FilePath = Field(description="The file, e.g. reports/2026/summary.md")
        offset: int = Field(
            1, ge=1, le=LARGEST_FILE, description="The first line to read; lines count from 1"
        )
        limit: int = Field(500, ge=1, le=MAX_LINES, description="Maximum number of lines")

    def validate(self, params: Params) -> None:
        parse_file_path(params.path)

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        text = _read_text(context.organization_id, parse_file_path(params.path))
        lines = take_lines(text, params.offset, params.limit)
        data = {"path": params.path, **lines.as_data()}
        heading = f"{params.path}, {lines.description}"
        return ToolResult.ok(
            data, f"Read {heading}", f"{heading}:\n\n{format_code_block(lines.text)}"
        )


class SearchFiles(Tool):
    """Result data: {hits: [{path, line, text}], searched, passed_over, left_out}; the last three
    count files."""

    name = "files.grep"
    display_name = "Search in files"
    description = (
        "Search the lines of text files in your organization's folder for a regular expression (RE2: no "
        "backreferences, no look-around). ^ and $ match the start and the end of a line."
    )
    level = Level.READ
    returns_outside_text = True
    Output = FileHits

    class Params(BaseModel):
        pattern: str = Field(
            min_length=1, max_length=LONGEST_PATTERN, description=r"The pattern, e.g. invoice \d{4}"
        )
        path: FolderPath = Field(
            "", description="A file, or a folder with its subfolders; if omitted, all files"
        )
        ignore_case: bool = Field(default=False, description="Ignore case")
        limit: int = Field(100, ge=1, le=MAX_HITS, description="Maximum number of lines")

    def validate(self, params: Params) -> None:
        parse_path(params.path)
        compile_pattern(params.pattern)

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        found = FileSearch(params.limit)
        pattern = compile_pattern(params.pattern, ignore_case=params.ignore_case)
        search_files(context.organization_id, parse_path(params.path), pattern, found)
        hits = [{"path": hit.path, "line": hit.line, "text": hit.text} for hit in found.hits]
        counts = {
            "searched": found.searched,
            "passed_over": found.passed_over,
            "left_out": found.left_out,
        }
        summary = f"Found {format_count(len(hits), 'line', 'lines')} in {format_count(found.searched, 'file', 'files')}"
        return ToolResult.ok({"hits": hits, **counts}, summary + describe_gaps(found))


class WriteFile(Tool):
    """Result data: {path, size, sha256, created}; size in bytes."""

    name = "files.write"
    display_name = "Write a file"
    description = (
        "Create a text file in your organization's folder, or replace an existing one. Missing folders are created. "
        "Read the file first if it may already exist."
    )
    level = Level.WRITE
    idempotent = True
    Output = WrittenFile

    class Params(BaseModel):
        path: FilePath = Field(description="The file, e.g. reports/2026/summary.md")
        text: str = Field(
            max_length=LARGEST_TEXT, description="The full text of the file, at most 1 MB"
        )

    def validate(self, params: Params) -> None:
        parse_file_path(params.path)
        if len(params.text.encode("utf-8")) > LARGEST_TEXT:
            raise ToolError(
                ErrorCode.LIMIT_EXCEEDED,
                "'text' is larger than 1 MB.",
                parameter="text",
                expected=f"text of at most {LARGEST_TEXT:,} bytes in UTF-8",
                attempted=False,
            )

    def preview(self, params: Params, context: ToolContext) -> Preview:
        effect = self._build_effect(params, context)
        size = len(params.text.encode("utf-8"))
        check_writable(context.organization_id, parse_file_path(params.path), size)
        return effect

    def _build_effect(self, params: Params, context: ToolContext) -> Preview:
        names = parse_file_path(params.path)
        now = _read_content(context.organization_id, names)
        if now is not None and now.text == params.text:
            done = Target(
                "", "/".join(names), before={"content": params.text}, after={"content": params.text}
            )
            message = f"{quote_path(params.path)} already contains exactly this text."
            raise NothingToDo(message, Preview("replace", (done,)))
        after = {"content": params.text}
        if now is None:
            return Preview("create", (Target("", "/".join(names), after=after),))
        target = Target("", "/".join(names), before={"content": now.description}, after=after)
        return Preview("replace", (target,), reversible=False)

    def sentence(self, params: Params, preview: Preview) -> str:
        verb = "Create" if preview.effect == "create" else "Replace"
        size = len(params.text.encode("utf-8"))
        lines = format_count(len(params.text.splitlines()), "line", "lines")
        return f"{verb} file {format_name(params.path)} with {lines} of text ({format_count(size, 'byte', 'bytes')})"

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        names, data = parse_file_path(params.path), params.text.encode("utf-8")
        existing = _read_content(context.organization_id, names)
        if existing is not None and existing.text == params.text:
            return _build_write_result(params.path, "Already written:", existing)

        def confirm(_: StagedFile) -> None:
            check_seal(self._build_effect(params, context), context)

        staged = write_file(context.organization_id, names, [data], confirm)
        return _build_write_result(
            params.path, "Replaced" if staged.replaces else "Created", staged
        )


class DeleteFile(Tool):
    """Result data: {deleted: [path]}."""

    name = "files.delete"
    display_name = "Delete files"
    description = "Permanently delete a file in your organization's folder, or a folder with all its contents."
    level = Level.DESTRUCTIVE
    idempotent = True
    Output = DeletedFiles

    class Params(BaseModel):
        path: FilePath = Field(description="The file or folder, e.g. reports/2026")

    def validate(self, params: Params) -> None:
        parse_file_path(params.path)

    def preview(self, params: Params, context: ToolContext) -> Preview:
        return _build_deletion(
            list_deletions(context.organization_id, parse_file_path(params.path))
        )

    def sentence(self, params: Params, preview: Preview) -> str:
        if [target.label for target in preview.targets] == [
            join_path(parse_file_path(params.path))
        ]:
            noun = "empty folder" if preview.targets[0].before["size"] == EMPTY_FOLDER else "file"
            return f"Permanently delete {noun} {format_name(params.path)}"
        inside = f": {format_count(preview.total, 'file', 'files')}" if preview.total else ""
        return f"Permanently delete folder {format_name(params.path)} with all its contents{inside}"

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        def confirm(entries: tuple[FolderEntry, ...]) -> None:
            check_seal(_build_deletion(entries), context)

        deleted_entries = delete_files(
            context.organization_id, parse_file_path(params.path), confirm
        )
        deleted = [entry.path for entry in deleted_entries]
        what = deleted[0] if len(deleted) == 1 else f"{len(deleted):,} files"
        return ToolResult.ok({"deleted": deleted}, f"Deleted {what}")


def check_seal(effect: Preview, context: ToolContext) -> None:
    """Refuse an effect that differs from the approved one.

    Raises:
        ToolError: OPERATION_FAILED
    """
    sealed = context.preview
    if sealed is not None and not sealed.problem and sealed.seal != effect.seal:
        raise ToolError(
            ErrorCode.OPERATION_FAILED,
            "The file changed just before the call started; nothing was done.",
            recovery_hint="Read the file again, and repeat the call if it is still needed.",
            attempted=False,
        )


def _build_row(entry: FolderEntry) -> dict[str, Any]:
    kind = "folder" if entry.is_folder else "file"
    return {
        "path": entry.path,
        "kind": kind,
        "size": entry.size,
        "changed": format_change_time(entry),
    }


def _read_text(organization_id: int, names: Names) -> str:
    with open_file(organization_id, names) as file:
        data = file.read(LARGEST_FILE + 1)
        size = file.seek(0, 2)
    text = decode_text(data) if size <= LARGEST_FILE else None
    if text is not None:
        return text
    path = quote_path(join_path(names))
    too_large = (
        f", and files over {LARGEST_FILE // 1_000_000} MB cannot be read"
        if size > LARGEST_FILE
        else ""
    )
    raise ToolError(
        ErrorCode.INVALID_OPERATION,
        f"{path} cannot be read as text: it is {detect_kind(data)} of {size:,} bytes{too_large}.",
        parameter="path",
        expected="a text file in UTF-8",
        attempted=False,
    )


def _read_content(organization_id: int, names: Names) -> FileContent | None:
    """Read the file's content; return None if nothing exists at this path. Raise ToolError for
    anything except a file."""
    entry = find_entry(organization_id, names)
    if entry is None:
        return None
    with open_file(organization_id, names) as file:
        return read_content(file)


def _build_deletion(entries: tuple[FolderEntry, ...]) -> Preview:
    targets = tuple(
        Target("", entry.path, version=entry.changed_ns, before={"size": describe_size(entry)})
        for entry in entries
    )
    return Preview("delete", targets, reversible=False)


def _build_write_result(path: str, verb: str, what: FileContent | StagedFile) -> ToolResult:
    data = {"path": path, "size": what.size, "sha256": what.sha256, "created": verb == "Created"}
    return ToolResult.ok(data, f"{verb} {path} ({format_count(what.size, 'byte', 'bytes')})")
