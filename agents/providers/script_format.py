"""Load and check the YAML files of scripts for scripted employees. Errors name the place of each
fault."""

import functools
import re
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from agents.providers.expressions import check_expression, check_values
from agents.providers.script_patterns import check_pattern

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_MOST_NAMED = 20
TRANSIENT_CODES = frozenset(
    {"rate_limited", "server_error", "unreachable", "timeout", "cut_stream", "bad_answer"}
)


def _check_condition(value: bool | str | None) -> bool | str | None:
    if isinstance(value, str):
        check_expression(value)
    return value


Condition: TypeAlias = Annotated[bool | str | None, AfterValidator(_check_condition)]


def _check_values(value: Any) -> Any:
    check_values(value)
    return value


_HAS_EXPRESSIONS = AfterValidator(_check_values)


class _ScriptPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScriptedFailure(_ScriptPart):
    """A simulated failure. For this pass and task, it happens `times` times in each process, or
    always if `times` is not given."""

    code: str = Field(min_length=1)
    message: str = "The script says so"
    retry_after: float | None = Field(None, ge=0, le=86_400, allow_inf_nan=False)
    times: int | None = Field(None, ge=1)
    transient: bool | None = None

    @property
    def is_transient(self) -> bool:
        return self.code in TRANSIENT_CODES if self.transient is None else self.transient


class ScriptedCall(_ScriptPart):
    """A call, or one call for each item of `for_each`. With `arguments`, the raw text replaces
    `params`, to imitate a model that writes bad JSON."""

    tool: str = Field(min_length=1)
    params: Annotated[dict[str, Any], _HAS_EXPRESSIONS] = Field(default_factory=dict)
    arguments: str | None = None
    for_each: Annotated[Any, _HAS_EXPRESSIONS] = None
    when: Condition = None


class ScriptedPass(_ScriptPart):
    """The text and the calls of one pass. If there are no calls, the next pass follows at once."""

    text: Annotated[str, _HAS_EXPRESSIONS] = ""
    delay_ms: int = Field(0, ge=0, le=600_000)
    when: Condition = None
    calls: tuple[ScriptedCall, ...] = ()
    fail: ScriptedFailure | None = None


class Script(_ScriptPart):
    """The passes and the answer for those tasks that match the regular expression `task`, which is
    in RE2's syntax."""

    task: str
    title: str = ""
    passes: tuple[ScriptedPass, ...] = ()
    answer: Annotated[str, _HAS_EXPRESSIONS]

    @field_validator("task")
    @classmethod
    def _task_is_a_pattern(cls, value: str) -> str:
        check_pattern(value)
        return value

    @property
    def shown_title(self) -> str:
        return self.title or self.task


class _ScriptFile(_ScriptPart):
    scripts: tuple[Script, ...] = Field(min_length=1)


def load_scripts(folder: Path, name: str) -> tuple[Script, ...]:
    """Load the scripts from one of this installation's files.

    Args:
        name: the file's name, without its folder and `.yaml`.

    Raises:
        LookupError: there is no such file; the text lists the existing ones.
        ValueError: the text names the places and the faults.
    """
    try:
        if not _NAME.fullmatch(name):
            raise FileNotFoundError
        text = (folder / f"{name}.yaml").read_text(encoding="utf-8")
    except OSError as error:
        fault = f"There is no script {name!r}" if name else "No script is named"
        known = ", ".join(sorted(each.stem for each in folder.glob("*.yaml"))[:_MOST_NAMED])
        raise LookupError(f"{fault}. This installation has: {known or 'none'}.") from error
    return parse_scripts(text)


@functools.lru_cache(maxsize=64)
def parse_scripts(text: str) -> tuple[Script, ...]:
    """Parse the scripts in this YAML.

    Raises:
        ValueError: the text names the places and the faults.
    """
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"not valid YAML: {error}") from error
    try:
        return _ScriptFile.model_validate(value).scripts
    except ValidationError as error:
        raise ValueError(
            "; ".join(_describe_fault(fault) for fault in error.errors()[:5])
        ) from error


def _describe_fault(fault: Any) -> str:
    place = ""
    for step in fault["loc"]:
        place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else str(step)
    message = str(fault["msg"]).removeprefix("Value error, ")
    return f"{place or 'the script'}: {message}"
