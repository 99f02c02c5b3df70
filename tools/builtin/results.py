"""Tools in the category `results`, with which a model reads the rest of a shortened result."""

from pydantic import BaseModel, Field

from tools.contract import ErrorCode, Level, Tool, ToolContext, ToolError, ToolResult
from tools.contract.excerpts import describe_position, take_excerpt


class ResultExcerpt(BaseModel):
    """The position of an excerpt; its text is the Markdown of the result."""

    unit: str
    start: int = Field(alias="from")
    to: int
    total: int


class ReadResult(Tool):
    name = "results.read"
    display_name = "Continue reading a large result"
    description = (
        "Continue reading an earlier result of this run that was shortened. Its last line gives the handle and the "
        "position where it stopped: continue from there."
    )
    level = Level.READ
    Output = ResultExcerpt
    idempotent = True

    class Params(BaseModel):
        handle: str = Field(
            description="The handle of the shortened result", examples=["r-17"], max_length=40
        )
        offset: int = Field(
            0, ge=0, description="The first row, line or character to read, counted from 0"
        )

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        result = context.earlier_result(params.handle)
        if result is None:
            raise ToolError(
                ErrorCode.NOT_FOUND,
                f"This run has no result {params.handle!r}.",
                parameter="handle",
                expected="the handle in the last line of a shortened result",
                attempted=False,
            )
        excerpt = take_excerpt(result, params.offset)
        position = describe_position(excerpt, "continue with offset {end}")
        return ToolResult.ok(
            {
                "unit": excerpt.unit,
                "from": excerpt.start,
                "to": excerpt.end,
                "total": excerpt.total,
            },
            position.partition(";")[0],
            f"{excerpt.text}\n[{position}]",
        )

    def running_summary(self, params: Params) -> str:
        return f"Reading more of {params.handle}…"
