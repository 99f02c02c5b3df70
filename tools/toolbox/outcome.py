"""Normalization of a tool's return value into a result that can be stored and shown."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from tools.contract import (
    INDEFINITE_CODES,
    JSON_TYPE,
    ErrorCode,
    KeptFile,
    Level,
    ResultError,
    ResultFile,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    canonical_json,
    find_media_type,
    make_storable,
)
from tools.contract.declarations import ValueRule
from tools.contract.errors import settle_error
from tools.contract.plain_json import describe_value, to_plain_json, write_text

ERROR_PREFIX = "TOOL ERROR:"
LARGEST_PART = 8_000_000
"""The limit in characters for each of a result's data, metadata and Markdown."""
LONGEST_SUMMARY = 4_000


_ERROR = ValueRule(TypeAdapter(ResultError))
_FILES = ValueRule(TypeAdapter(tuple[ResultFile, ...]))
MOST_FILES = 20
"""The maximum number of files in one result."""
FileKeeper = Callable[[Level, Sequence[ResultFile]], list[KeptFile]]
"""A function that keeps the files of a call of this level among the organization's files."""
FILES = "files"
"""The metadata key of the descriptions of kept files."""
MARKDOWN_TYPE = "text/markdown"
UNREADABLE = "unreadable"
"""The metadata key that describes the unreadable part of a successful write's result."""


def normalize_result(
    tool: Tool, returned: object, duration_ms: int, level: Level | None = None
) -> ToolResult:
    """Turn the returned value into a result of plain JSON, detached from the tool's own objects.

    A string becomes a result with its first line as the summary and all of it as Markdown; one that
    starts with `TOOL ERROR:` is a failure. Any other value is the data of a result. NUL characters
    and lone surrogates, which no database stores, become U+FFFD.

    A write that has returned did happen, whatever its result is: unreadable parts are left out, and
    the result names them.

    Args:
        level: the call's level if an admin raised it; None means the tool's own.

    Raises:
        ToolError: LIMIT_EXCEEDED if the result of a read is too large. TOOL_EXECUTION_FAILED, with
            the place of the fault, if it is not JSON or does not match the tool's `Output`; or if
            nobody can know whether the tool succeeded. OPERATION_FAILED if a transactional
            tool's result cannot be read; this failure is certain, because the effect is rolled
            back.
    """
    reader = _ResultReader(tool, level or tool.level)
    result = reader.find_result(returned)
    if not isinstance(result.success, bool) or result.success is (result.error is not None):
        raise _build_broken_promise(tool, "success and error contradict each other")
    error = reader.read_error(result.error)
    data = reader.read_part(result.data, "data")
    markdown = reader.read_text(result.markdown, "markdown")
    if result.success and tool.Output is not None and not reader.fault:
        reader.check_output(tool.Output, data)
    files = reader.read_files(result.files)
    details = reader.read_part(result.details, "details")
    kind = reader.read_content_type(result.content_type)
    metadata = reader.read_metadata(result.metadata)
    summary = " ".join(reader.read_text(result.summary, "summary")[:LONGEST_SUMMARY].split())
    if reader.fault:
        note = f"{'It succeeded, but its' if result.success else 'Its'} result cannot be read: {reader.fault}."
        shown = markdown or (canonical_json(data) if data is not None else "")
        metadata[UNREADABLE] = reader.fault
        summary, markdown = f"{summary.rstrip('.') or 'Done'}. {note}", f"{note}\n{shown}".rstrip()
    metadata["duration_ms"] = duration_ms
    return ToolResult(
        result.success, data, summary, markdown, error, metadata, files, kind, details
    )


def build_unreadable_result(tool: Tool, duration_ms: int, level: Level) -> ToolResult:
    """Build the result of a write whose returned value cannot be read.

    Raises:
        ToolError: the tool is transactional, so nothing was changed.
    """
    reader = _ResultReader(tool, level)
    reader.refuse("its own code fails; the reason is in the log")
    note = f"It succeeded, but its result cannot be read: {reader.fault}."
    metadata = {UNREADABLE: reader.fault, "duration_ms": duration_ms}
    return ToolResult(success=True, summary=f"Done. {note}", markdown=note, metadata=metadata)


def keep_files(
    keeper: FileKeeper | None, tool: Tool, context: ToolContext, result: ToolResult
) -> ToolResult:
    """Keep the result's files, and put their descriptions into its metadata.

    A write whose files cannot be kept succeeds without them.

    Raises:
        ToolError: the files of a read cannot be kept.
    """
    level = context.level or tool.level
    try:
        kept = (keeper or _describe_files)(level, result.files)
    except ToolError as error:
        if not level.has_side_effects:
            raise
        note = f"Its files were not kept: {error.message}"
        return replace(result, files=(), summary=f"{result.summary.rstrip('.')}. {note}")
    return replace(
        result, files=(), metadata={**result.metadata, FILES: [file.as_json() for file in kept]}
    )


def _describe_files(_: Level, files: Sequence[ResultFile]) -> list[KeptFile]:
    return [KeptFile(file.name, "", len(file.content), file.content_type) for file in files]


class _ResultReader:
    """Reads the parts of one result.

    For a read, the first fault is a failure; for a write, the faulty part is left out.

    Attributes:
        fault: the first fault in a write's result; empty if there is none.
    """

    def __init__(self, tool: Tool, level: Level) -> None:
        self._tool = tool
        self._is_write = level.has_side_effects
        self.fault = ""

    def find_result(self, returned: object) -> ToolResult:
        if isinstance(returned, ToolResult):
            return returned
        if isinstance(returned, str):
            return _parse_text(str.__str__(returned))
        if isinstance(returned, Iterator | AsyncIterator | Awaitable):
            raise _build_broken_promise(
                self._tool, f"it is a {type(returned).__name__} that was never run or awaited"
            )
        if returned is None and not self._is_write:
            self.refuse("it is NoneType, not a ToolResult")
        return ToolResult.ok(returned)

    def read_error(self, error: object) -> ResultError | None:
        if error is None:
            return None
        if isinstance(error, ToolError):
            return ToolResult.failed(settle_error(error)).error
        if isinstance(error, str):
            return ResultError(
                ErrorCode.OPERATION_FAILED, error, f"{ERROR_PREFIX} OPERATION_FAILED\n{error}"
            )
        try:
            converted: ResultError = _ERROR.convert(error)
        except ValueError as fault:
            raise _build_broken_promise(
                self._tool, f"error is {describe_value(error)}: {fault}"
            ) from fault
        return converted

    def read_part(self, value: object, place: str) -> Any:
        """Return the data or metadata as plain JSON."""
        plain = to_plain_json(value, place)
        if plain.fault:
            self.refuse(plain.fault)
        return plain.value if self._fits(plain.size, place) else None

    def read_text(self, value: object, place: str) -> str:
        text = write_text(value) if self._is_write else value
        if not isinstance(text, str):
            self.refuse(f"{place} must be text, not {describe_value(value)}")
            return ""
        return make_storable(text) if self._fits(len(text), place) else ""

    def read_content_type(self, value: object) -> str:
        found = find_media_type(value) if isinstance(value, str) else ""
        if not found:
            self.refuse(
                f"content_type is {describe_value(value)}, not a media type such as 'text/csv'"
            )
        return found or JSON_TYPE

    def read_metadata(self, value: object) -> dict[str, Any]:
        if isinstance(value, dict) and isinstance(cost := value.get("cost"), Decimal):
            value = {**value, "cost": float(cost)}  # costs are added up as numbers
        found = self.read_part(value, "metadata")
        if isinstance(found, dict):
            found.pop(FILES, None)  # only stored files are listed there
            return found
        if found is not None:
            self.refuse(f"metadata is {describe_value(value)}, not a dictionary")
        return {}

    def read_files(self, files: object) -> tuple[ResultFile, ...]:
        if not files:
            return ()
        try:
            found: tuple[ResultFile, ...] = _FILES.convert(files)
        except ValueError as error:
            self.refuse(f"files: {error}")
            return ()
        if len(found) > MOST_FILES:
            self.refuse(f"it has {len(found):,} files; the limit is {MOST_FILES}")
        return found[:MOST_FILES]

    def check_output(self, output: type[BaseModel], data: Any) -> None:
        try:
            output.model_validate(data)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            place = ".".join(["data", *(str(part) for part in first["loc"])])
            self.refuse(f"{place}: {first['msg']}")

    def _fits(self, size: int, place: str) -> bool:
        if size <= LARGEST_PART:
            return True
        fault = f"{size:,} characters of {place}; the limit is {LARGEST_PART:,}"
        if not self._is_write:
            message = f"{self._tool.title} returned {fault}."
            raise ToolError(
                ErrorCode.LIMIT_EXCEEDED, message, recovery_hint="Request less at once."
            )
        self.refuse(f"it has {fault}")
        return False

    def refuse(self, fault: str) -> None:
        if not self._is_write:
            raise _build_broken_promise(self._tool, fault)
        if self._tool.transactional:
            message = (
                f"The result of {self._tool.title} cannot be read: {fault}. Nothing was changed."
            )
            raise ToolError(ErrorCode.OPERATION_FAILED, message, attempted=False)
        self.fault = self.fault or fault


def _parse_text(text: str) -> ToolResult:
    first, _, rest = text.strip().partition("\n")
    if not first.startswith(ERROR_PREFIX):
        return ToolResult.ok(summary=first.strip(), markdown=text, content_type=MARKDOWN_TYPE)
    name = first.removeprefix(ERROR_PREFIX).strip()
    known = name in ErrorCode.__members__
    code = ErrorCode(name) if known else ErrorCode.OPERATION_FAILED
    message = (rest.partition("\n")[0].strip() if known else name) or "The tool reported a failure."
    error = ResultError(code, message, text.strip(), is_definite=code not in INDEFINITE_CODES)
    return ToolResult(success=False, summary=message, error=error)


def _build_broken_promise(tool: Tool, fault: str) -> ToolError:
    """Build the error of a result that breaks the tool's declaration; the effect is unknown."""
    return ToolError(
        ErrorCode.TOOL_EXECUTION_FAILED,
        f"{tool.title} returned a result that does not match its declaration: {fault}.",
    )
