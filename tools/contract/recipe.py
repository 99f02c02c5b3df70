"""Recipes: tools made of steps, each judged, approved and recorded as a call of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from tools.contract.context import ToolContext
from tools.contract.declarations import Example
from tools.contract.level import Level
from tools.contract.result import ToolResult
from tools.contract.suspension import Steps
from tools.contract.tool import Tool
from tools.contract.values import CHECKED_AGAIN, Text


@dataclass(frozen=True)
class Step:
    """One call of a recipe.

    Attributes:
        tool: the name of the tool; the employee needs a grant for it, as for the recipe itself.
        params: builds the step's params from the recipe's params and the results of the earlier
            steps, in order.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CHECKED_AGAIN

    tool: Text
    params: Callable[[Any, Sequence[ToolResult]], dict[str, Any]]


class Recipe(Tool):
    """Base class for recipes: set `steps`, and override `result` to change the final result.

    The steps run one after the other. Each step whose level is above `draft` waits for its own
    card, so nobody approves more than a card shows. The first step that fails ends the recipe, and
    the error names that step and the reason.
    """

    level = Level.READ
    suspends = True
    steps: Annotated[
        tuple[Step, ...],
        Field(min_length=1),
        Example('(Step("data.getStats", lambda params, results: {}),)'),
    ] = ()

    def execute(self, params: Any, context: ToolContext) -> Steps:
        return Steps()

    def result(self, params: Any, results: Sequence[ToolResult]) -> ToolResult | str:
        """Build the recipe's result from the results of all steps; by default, the last step's
        result."""
        return results[-1]
