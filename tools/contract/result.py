"""The result of a tool call."""

from dataclasses import dataclass, field
from typing import Any, Self

from tools.contract.canonical import canonical_json
from tools.contract.errors import ErrorCode, ToolError, format_error


@dataclass(frozen=True)
class ResultError:
    """The failure of a call: `text` is written for the model, `message` for people."""

    code: ErrorCode
    message: str
    text: str
    is_definite: bool = True


@dataclass(frozen=True)
class ToolResult:
    """The outcome of one call.

    Attributes:
        data: JSON for the model to reason about.
        summary: one line for people, e.g. "Found 47 records in Region A".
        markdown: sent to the model instead of `data` unless empty.
        error: set if and only if `success` is False.
        metadata: duration_ms, cost, units, source, content_type, or anything else.
    """

    success: bool
    data: Any = None
    summary: str = ""
    markdown: str = ""
    error: ResultError | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def ok(cls, data: Any = None, summary: str = "", markdown: str = "", **metadata: Any) -> Self:
        return cls(success=True, data=data, summary=summary or "Done", markdown=markdown, metadata=metadata)

    @classmethod
    def failed(cls, error: ToolError, **metadata: Any) -> Self:
        failure = ResultError(error.code, error.message, format_error(error), error.is_definite)
        return cls(success=False, summary=error.message, error=failure, metadata=metadata)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        """Load a result from `as_json`; an error has only its code and message."""
        error = stored["error"]
        if error is not None:
            return cls.failed(ToolError(ErrorCode(error["code"]), error["message"]), **stored["metadata"])
        return cls.ok(stored["data"], stored["summary"], stored["markdown"], **stored["metadata"])

    def as_json(self) -> dict[str, Any]:
        """Return {success, summary, data, markdown, error {code, message} or None, metadata}."""
        error = {"code": self.error.code.value, "message": self.error.message} if self.error else None
        return {
            "success": self.success,
            "summary": self.summary,
            "data": self.data,
            "markdown": self.markdown,
            "error": error,
            "metadata": self.metadata,
        }

    def for_model(self) -> str:
        """Return the text of the tool message: the error's text, else the markdown, else the data as JSON."""
        if self.error is not None:
            return self.error.text
        if self.markdown:
            return self.markdown
        return canonical_json(self.data) if self.data is not None else self.summary
