"""Tools of the category results: the rest of a result that was too large to be told at once."""

from pydantic import BaseModel, Field

from tools.contract import ErrorCode, Level, Tool, ToolContext, ToolError, ToolResult
from tools.contract.portions import Portion, portion_of

from .outputs import ResultPortion


class ReadResult(Tool):
    name = "results.read"
    display_name = "Read on in a large result"
    description = (
        "Read on in an earlier result of this run that was shortened. Its last line names the handle and how much of "
        "it you have seen: go on from there."
    )
    level = Level.READ
    Output = ResultPortion
    idempotent = True

    class Params(BaseModel):
        handle: str = Field(description="The handle that the shortened result names", examples=["r-17"], max_length=40)
        offset: int = Field(0, ge=0, description="The first row, line or character wanted, counted from 0")

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
        portion = portion_of(result, params.offset)
        told = f"{portion.unit.capitalize()} {portion.start:,} to {portion.end:,} of {portion.total:,}"
        return ToolResult.ok(
            {"unit": portion.unit, "from": portion.start, "to": portion.end, "total": portion.total},
            told,
            f"{portion.text}\n[{told}{_how_to_go_on(portion)}]",
        )

    def running_summary(self, params: Params) -> str:
        return f"Reading on in {params.handle}…"


def _how_to_go_on(portion: Portion) -> str:
    if portion.end == portion.total:
        return "; this is the end"
    return f"; read on with offset {portion.end}"
