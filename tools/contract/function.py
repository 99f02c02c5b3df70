"""The `@tool` decorator: builds a tool from a typed function, its type hints and its docstring."""

import inspect
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any, get_type_hints

from pydantic import BaseModel, Field, create_model
from pydantic.fields import FieldInfo

from tools.contract.context import ToolContext
from tools.contract.level import Level
from tools.contract.tool import Tool

_SECTION = re.compile(
    r"(?:Args|Arguments|Parameters|Returns|Raises|Yields|Example|Examples|Note|Notes):\s*"
)
_ARGUMENT = re.compile(r"(\w+)(?:\s*\([^)]*\))?\s*:\s*(.*)")


class FunctionTool(Tool):
    """A tool built from a function; calling the tool calls the function."""

    def __init__(self, function: Callable[..., Any], **attributes: Any) -> None:
        self.function = function
        self.name = attributes.pop("name", "") or _derive_category(
            function
        ) + _convert_to_camel_case(function.__name__)
        text, descriptions = _read_docstring(function)
        self.description = attributes.pop("description", "") or text
        for key, value in attributes.items():
            if not hasattr(type(self), key):
                raise TypeError(
                    f"@tool({key}=…) of {function.__qualname__}: a tool has no attribute {key!r}"
                )
            setattr(self, key, value)
        self._context_name, self.Params = _read_signature(function, descriptions)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    def execute(self, params: Any, context: ToolContext) -> Any:
        values = {name: getattr(params, name) for name in type(params).model_fields}
        if self._context_name:
            values[self._context_name] = context
        return self.function(**values)


def tool(
    name: str = "", *, level: Level = Level.DESTRUCTIVE, **attributes: Any
) -> Callable[..., FunctionTool]:
    """Build a tool from a typed function, `def` or `async def`; a missing level means destructive.

    Each parameter becomes a param of the tool, except one annotated `ToolContext`, which receives
    the context. The tool's description is the docstring without its sections. A param's description
    is its line under `Args:`, or its `Annotated[…, Field(description=…)]`. The function returns a
    `ToolResult` or a text.

    Args:
        name: `category.toolName`; by default the module's last name and the function's name in
            camelCase.
        attributes: any other attribute of `Tool`, e.g. `description`, `version`, `transactional`.

    Raises:
        TypeError: a parameter has no type, is positional-only or is variadic; or `attributes` has a
            name that no tool has.
    """
    return lambda function: FunctionTool(function, name=name, level=level, **attributes)


def _read_signature(
    function: Callable[..., Any], descriptions: dict[str, str]
) -> tuple[str, type[BaseModel]]:
    """Return the name of the context parameter, or "", and a model of all other parameters."""
    hints = get_type_hints(function, include_extras=True)
    context_name = ""
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"@tool {function.__qualname__}: {parameter} cannot be passed by name")
        if name not in hints:
            raise TypeError(f"@tool {function.__qualname__}: the parameter {name!r} needs a type")
        if hints[name] is ToolContext:
            context_name = name
        else:
            fields[name] = (
                hints[name],
                _build_field(parameter, hints[name], descriptions.get(name, "")),
            )
    return context_name, create_model(_convert_to_camel_case(function.__name__), **fields)


def _build_field(parameter: inspect.Parameter, hint: Any, description: str) -> Any:
    default = ... if parameter.default is parameter.empty else parameter.default
    annotations = getattr(hint, "__metadata__", ())
    has_description = any(isinstance(part, FieldInfo) and part.description for part in annotations)
    return (
        default if has_description or not description else Field(default, description=description)
    )


def _read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the text before the first section, and the description of each parameter."""
    lines = (inspect.getdoc(function) or "").splitlines()
    starts = [index for index, line in enumerate(lines) if _SECTION.fullmatch(line)]
    text = "\n".join(lines[: starts[0]] if starts else lines).strip()
    descriptions: dict[str, list[str]] = {}
    for start, end in pairwise([*starts, len(lines)]):
        if lines[start].startswith(("Args", "Arguments", "Parameters")):
            _read_arguments(lines[start + 1 : end], descriptions)
    return text, {name: " ".join(parts) for name, parts in descriptions.items()}


def _read_arguments(lines: list[str], descriptions: dict[str, list[str]]) -> None:
    """Add an entry for each `name: text`, joined with the indented lines below it."""
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    current: list[str] = []
    for line in lines:
        is_first = line.strip() and len(line) - len(line.lstrip()) == min(indents)
        found = _ARGUMENT.fullmatch(line.strip()) if is_first else None
        if found:
            current = descriptions.setdefault(found[1], [found[2]])
        elif line.strip():
            current.append(line.strip())


def _derive_category(function: Callable[..., Any]) -> str:
    return function.__module__.rpartition(".")[2] + "."


def _convert_to_camel_case(name: str) -> str:
    first, *rest = name.strip("_").split("_")
    return first + "".join(part.title() for part in rest)
