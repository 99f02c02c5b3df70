"""A recipe: a tool that is a declared list of steps, each of which is a call of its own, judged and carded like any."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .context import ToolContext
from .level import Level
from .result import ToolResult
from .suspend import Steps
from .tool import Tool


@dataclass(frozen=True)
class Step:
    """One call of a recipe.

    Attributes:
        tool: the name of the tool, which the employee has to be granted like the recipe itself.
        params: makes the step's params from the recipe's own and from the results of the steps before, in order.
    """

    tool: str
    params: Callable[[Any, Sequence[ToolResult]], dict[str, Any]]


class Recipe(Tool):
    """Set `steps`, and write `result` if the last step's is not the recipe's.

    The steps run one after the other; each is recorded, and one above draft waits for its own card, so that nobody
    approves more than a card shows. The first that does not succeed ends the recipe, which says which one and why.
    """

    level = Level.READ
    suspends = True
    steps: tuple[Step, ...] = ()

    def execute(self, params: Any, context: ToolContext) -> Steps:
        return Steps()

    def result(self, params: Any, results: Sequence[ToolResult]) -> ToolResult | str:
        """What the whole recipe came to, from the results of all its steps."""
        return results[-1]
