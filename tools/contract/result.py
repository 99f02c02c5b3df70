"""The result of a tool call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Self

from pydantic import ConfigDict

from tools.contract.canonical import canonical_json
from tools.contract.errors import ErrorCode, ToolError, format_error
from tools.contract.values import CHECKED_AGAIN, WrittenText

JSON_TYPE = "application/json"
_MEDIA_TYPE = re.compile(r"\s*([\w.+-]{1,40}/[\w.+-]{1,80})\s*(?:;|\Z)", re.ASCII)


@dataclass(frozen=True)
class ResultError:
    """The failure of a call: `text` is written for the model, `message` for people.

    Attributes:
        fact, words: the parts of the message: Gadget's own and the other system's, if any.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CHECKED_AGAIN

    code: ErrorCode
    message: WrittenText
    text: WrittenText
    is_definite: bool = True
    fact: str = ""
    words: str = ""


@dataclass(frozen=True)
class ResultFile:
    """A file that a tool returns; Gadget keeps it among the organization's files.

    Attributes:
        name: as people see it, e.g. "report.pdf".
        content_type: the media type, if it is known.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CHECKED_AGAIN

    name: WrittenText
    content: bytes
    content_type: WrittenText = ""


@dataclass(frozen=True)
class ToolResult:
    """The outcome of one call.

    Attributes:
        data: JSON for the model to reason about, or anything that pydantic writes as JSON.
        summary: one line for people, e.g. "Found 47 records in Region A".
        markdown: sent to the model instead of `data` if it is not empty.
        error: set if and only if `success` is False.
        metadata: duration_ms, cost, units, source, or anything else. The entry `files` describes
            the kept files.
        files: files for Gadget to keep; after that, the result only has their descriptions, in the
            metadata.
        content_type: the media type of the data or the Markdown.
        details: JSON for people and other software; the model does not read it.
    """

    success: bool
    data: Any = None
    summary: str = ""
    markdown: str = ""
    error: ResultError | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    files: Sequence[ResultFile] = ()
    content_type: str = JSON_TYPE
    details: Any = None

    @classmethod
    def ok(  # noqa: PLR0913 - the parts of a result, most of them passed by keyword
        cls,
        data: Any = None,
        summary: str = "",
        markdown: str = "",
        *,
        files: Sequence[ResultFile] = (),
        content_type: str = JSON_TYPE,
        details: Any = None,
        **metadata: Any,
    ) -> Self:
        line = summary or "Done"
        return cls(True, data, line, markdown, None, metadata, files, content_type, details)  # noqa: FBT003

    @classmethod
    def failed(
        cls,
        error: ToolError,
        *,
        content_type: str = JSON_TYPE,
        details: Any = None,
        **metadata: Any,
    ) -> Self:
        failure = ResultError(
            error.code,
            error.message,
            format_error(error),
            error.is_definite,
            error.fact,
            error.words,
        )
        return cls(False, None, error.message, "", failure, metadata, (), content_type, details)  # noqa: FBT003

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        """Load a result from the JSON of `as_json`; an error keeps only its code and message."""
        error, whole = stored["error"], list_result_parts(stored)
        if error is None:
            loaded = cls.ok(stored["data"], stored["summary"], stored["markdown"])
        else:
            loaded = cls.failed(ToolError(ErrorCode(error["code"]), error["message"]))
        return replace(
            loaded,
            metadata=stored["metadata"],
            content_type=whole["content_type"],
            details=whole["details"],
        )

    def as_json(self) -> dict[str, Any]:
        """Return {success, summary, data, markdown, error {code, message} or None, metadata}.

        The metadata also holds the details, if there are any, and the content type if it is not
        JSON; the model does not read these.
        """
        more = {} if self.content_type == JSON_TYPE else {"content_type": self.content_type}
        more |= {} if self.details is None else {"details": self.details}
        error = (
            {"code": self.error.code.value, "message": self.error.message} if self.error else None
        )
        return {
            "success": self.success,
            "summary": self.summary,
            "data": self.data,
            "markdown": self.markdown,
            "error": error,
            "metadata": self.metadata | more,
        }

    def for_model(self) -> str:
        """Return the text for the model: the error, or else the Markdown, the data as JSON, or the
        summary."""
        if self.error is not None:
            return self.error.text
        if self.markdown:
            return self.markdown
        return canonical_json(self.data) if self.data is not None else self.summary

    def list_files(self) -> list[KeptFile]:
        """List the kept files of the result."""
        return read_kept_files(self.metadata)


def list_result_parts(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored result with the content type and the details as keys, for people and the REST
    API."""
    metadata = stored.get("metadata") or {}
    kind = metadata.get("content_type")
    return {
        **stored,
        "content_type": (find_media_type(kind) if isinstance(kind, str) else "") or JSON_TYPE,
        "details": metadata.get("details"),
    }


def find_media_type(text: str) -> str:
    """Return the media type with which the text begins, without parameters; empty if
    there is none."""
    found = _MEDIA_TYPE.match(text)
    return found[1] if found else ""


@dataclass(frozen=True)
class KeptFile:
    """A result's file, kept among the organization's files.

    Attributes:
        path: the file's path there; empty if the file was not kept, as in a test without a run.
    """

    name: str
    path: str
    size: int
    content_type: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def describe(self) -> str:
        """Describe the file for the model, with the path that the file tools take."""
        kind = f", {self.content_type}" if self.content_type else ""
        handle = f", path {self.path}" if self.path else ""
        return f"[file: {self.name}, {self.size:,} bytes{kind}{handle}]"


def read_kept_files(metadata: dict[str, Any]) -> list[KeptFile]:
    """Return the kept files listed in a result's metadata. Entries of any other shape, which older
    results may contain, are skipped."""
    described = metadata.get("files")
    fields = {"name": str, "path": str, "size": int, "content_type": str}
    return [
        KeptFile(**each)
        for each in (described if isinstance(described, list) else [])
        if isinstance(each, dict)
        and each.keys() == fields.keys()
        and all(isinstance(each[name], kind) for name, kind in fields.items())
    ]
