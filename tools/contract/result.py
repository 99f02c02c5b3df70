"""What a tool returns."""

from dataclasses import dataclass, field
from typing import Any, Self

from .canonical import canonical_json
from .errors import ErrorCode, ToolError, format_error


@dataclass(frozen=True)
class ResultError:
    """Why a call failed: `text` is what the model reads, `message` what a person reads."""

    code: ErrorCode
    message: str
    text: str
    is_definite: bool = True


@dataclass(frozen=True)
class ToolResult:
    """The outcome of one call.

    Attributes:
        data: JSON that the model reasons about.
        summary: one line for the person, e.g. "Found 47 records in Region A".
        markdown: given to the model instead of `data` when not empty.
        error: set exactly when `success` is False.
        metadata: duration_ms, cost, units, source, content_type, anything.
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
        told = ResultError(error.code, error.message, format_error(error), error.is_definite)
        return cls(success=False, summary=error.message, error=told, metadata=metadata)

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Self:
        """What `as_json` made; of an error, only code and message were kept."""
        error = kept["error"]
        if error is not None:
            return cls.failed(ToolError(ErrorCode(error["code"]), error["message"]), **kept["metadata"])
        return cls.ok(kept["data"], kept["summary"], kept["markdown"], **kept["metadata"])

    def as_json(self) -> dict[str, Any]:
        """{success, summary, data, markdown, error {code, message} or None, metadata}."""
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
        """The text of the tool message: the error's text, else the markdown, else the data as JSON."""
        if self.error is not None:
            return self.error.text
        if self.markdown:
            return self.markdown
        return canonical_json(self.data) if self.data is not None else self.summary
