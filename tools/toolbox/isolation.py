"""The only module that runs a tool's own code; it turns any exception into a `ToolError`."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

from tools.contract import ErrorCode, Tool, ToolError
from tools.contract.declarations import read_declarations
from tools.contract.errors import settle_error
from tools.contract.plain_json import describe_value

logger = logging.getLogger("gadget.tools")

Value = TypeVar("Value")

_ATTEMPTED_ACTS = ("execute", "result")


@dataclass(frozen=True)
class Unnamed:
    """A stand-in for a tool that is not built or checked yet, so that its own names cannot be
    trusted."""

    id: str

    @property
    def title(self) -> str:
        return self.id


class UnexpectedFailure(ToolError):
    """Any exception of a tool's own code except a `ToolError`."""


class BrokenPromise(ToolError):
    """A method returned a value of a type that it does not declare; the call was not attempted."""


def run_isolated(
    tool: Tool | Unnamed,
    act: str,
    work: Callable[[], Value],
    let_through: tuple[type[BaseException], ...] = (),
) -> Value:
    """Run `work` and return its value, converted to the type that the method declares.

    In-process tools are trusted code that may fail in any way, including `SystemExit`,
    `KeyboardInterrupt` and `MemoryError`. The full exception is logged. The model only sees a code,
    because the text may contain a key, a path or SQL.

    Args:
        act: the name of the tool's method; anything else only names the work in the log.
        let_through: exceptions that the caller handles itself, such as a lost transaction.

    Raises:
        BrokenPromise: the method returned a value of another type, which the text names.
        ToolError: an error that the tool itself raised.
        UnexpectedFailure: TOOL_EXECUTION_FAILED, for any other exception. The call was attempted
            only if `execute`, or the reading of its result, failed.
        BaseException: an exception of the classes in `let_through`.
    """
    try:
        returned = work()
    except ToolError as error:
        # A variable with the error would keep everything in the tool's frames, such as a result of
        # 100 MB, until the next garbage collection.
        if settle_error(error) is error:
            raise
        raise settle_error(error) from error
    except let_through:
        raise
    except BaseException as error:
        logger.exception("%s: %s raised %s", tool.id, act, type(error).__name__)
        raise _build_failure(tool, act) from error
    return convert_returned(tool, act, returned)


def convert_returned(tool: Tool | Unnamed, act: str, returned: Value) -> Value:
    """Convert the return value of the tool's method `act` to the declared type.

    Raises:
        BrokenPromise: the value cannot be converted.
    """
    returned_rules = read_declarations(type(tool)).returned
    if act not in returned_rules:
        return returned
    rule = returned_rules[act]
    try:
        return cast("Value", None if rule is None else rule.convert(returned))
    except ValueError as error:
        message = f"{tool.title}: {act} returned {describe_value(returned)}. {error}."
        logger.error("%s: %s", tool.id, message)  # noqa: TRY400 - the traceback would say no more
        raise BrokenPromise(
            ErrorCode.TOOL_EXECUTION_FAILED,
            message,
            recovery_hint="The tool has to be repaired. Continue without it.",
            attempted=False,
        ) from error


def _build_failure(tool: Tool | Unnamed, act: str) -> UnexpectedFailure:
    return UnexpectedFailure(
        ErrorCode.TOOL_EXECUTION_FAILED,
        f"{tool.title} failed unexpectedly; the reason is in the log.",
        attempted=act in _ATTEMPTED_ACTS,
    )
