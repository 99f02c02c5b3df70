"""Isolation of tools: the only module that runs a tool's own code. It turns any exception into a `ToolError`."""

import logging
from collections.abc import Callable
from typing import TypeVar

from tools.contract import ErrorCode, Tool, ToolError

logger = logging.getLogger("gadget.tools")

Value = TypeVar("Value")

_ATTEMPTED_ACTS = ("execute", "result")


def run_isolated(
    tool: Tool,
    act: str,
    work: Callable[[], Value],
    let_through: tuple[type[BaseException], ...] = (),
) -> Value:
    """Run `work` and return its value.

    In-process tools are trusted code that may fail in any way, including `SystemExit`, `KeyboardInterrupt` and
    `MemoryError`. The full exception is logged. The model only sees a code, because the text may contain a key, a
    path or SQL.

    Args:
        act: names the work in the log, e.g. "preview".
        let_through: exceptions that the caller handles itself, such as a lost transaction.

    Raises:
        ToolError: the tool's own, or TOOL_EXECUTION_FAILED. Only `execute` and reading its result count as attempted.
        BaseException: an exception of the classes in `let_through`.
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
            f"{tool.title} failed unexpectedly; the reason is in the log.",
            attempted=act in _ATTEMPTED_ACTS,
        ) from error
