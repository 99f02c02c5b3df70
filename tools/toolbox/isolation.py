"""The one place where a tool's own code runs: whatever it raises leaves here as a `ToolError`."""

import logging
from collections.abc import Callable
from typing import TypeVar

from tools.contract import ErrorCode, Tool, ToolError

logger = logging.getLogger("gadget.tools")

Value = TypeVar("Value")

_AFTER_THE_START = ("execute", "result")


def isolated(
    tool: Tool,
    act: str,
    work: Callable[[], Value],
    let_through: tuple[type[BaseException], ...] = (),
) -> Value:
    """What `work` returns; `act` names it in the log, e.g. "preview".

    In-process tools are trusted code that may fail in any way, `SystemExit`, `KeyboardInterrupt` and `MemoryError`
    included. The exception is logged whole; the model is told its code only, because the text may hold a key, a path
    or SQL.

    Raises:
        ToolError: the tool's own, or TOOL_EXECUTION_FAILED. Only `execute` and reading its result count as attempted.
        BaseException: of the classes in `let_through`, which are the caller's business (a lost transaction).
    """
    try:
        return work()
    except ToolError:
        raise
    except let_through:
        raise
    except BaseException as error:
        logger.exception("%s: %s raised %s", tool.id, act, type(error).__name__)
        raise ToolError(
            ErrorCode.TOOL_EXECUTION_FAILED,
            f"{tool.title} failed for a reason of its own, which was logged.",
            attempted=act in _AFTER_THE_START,
        ) from error
