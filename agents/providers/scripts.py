"""The format of a scripted employee's YAML: read, checked and kept; everything wrong is named with its place."""

import functools
from typing import Annotated, Any, TypeAlias

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from agents.providers.expressions import check_expression, check_values
from agents.providers.patterns import check_pattern

MAX_SCRIPT = 200_000
MAX_SCRIPTS = 200
TRANSIENT_CODES = frozenset({"rate_limited", "server_error", "unreachable", "timeout", "cut_stream", "bad_answer"})


def _parsing(value: bool | str | None) -> bool | str | None:
    if isinstance(value, str):
        check_expression(value)
    return value


Condition: TypeAlias = Annotated[bool | str | None, AfterValidator(_parsing)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScriptedFailure(_Part):
    """The provider fails so: `times` times in this process for this pass and task text, or always when not given."""

    code: str = Field(min_length=1)
    message: str = "The script says so"
    retry_after: float | None = Field(None, ge=0, le=86_400, allow_inf_nan=False)
    times: int | None = Field(None, ge=1)
    transient: bool | None = None

    @property
    def is_transient(self) -> bool:
        return self.code in TRANSIENT_CODES if self.transient is None else self.transient


class ScriptedCall(_Part):
    """One call, or one for each item of `for_each`; `arguments` is raw text, to play a model that writes bad JSON."""

    tool: str = Field(min_length=1)
    params: dict[str, Any] = Field(default_factory=dict)
    arguments: str | None = None
    for_each: Any = None
    when: Condition = None

    @field_validator("params", "for_each")
    @classmethod
    def _expressions_parse(cls, value: Any) -> Any:
        check_values(value)
        return value


class ScriptedPass(_Part):
    """What the employee says and calls in one pass; a pass without calls flows into the next one."""

    text: str = ""
    delay_ms: int = Field(0, ge=0, le=600_000)
    when: Condition = None
    calls: tuple[ScriptedCall, ...] = ()
    fail: ScriptedFailure | None = None

    @field_validator("text")
    @classmethod
    def _text_parses(cls, value: str) -> str:
        check_values(value)
        return value


class Script(_Part):
    """The passes for tasks in which the regular expression `task`, in RE2's syntax, is found."""

    task: str
    title: str = ""
    passes: tuple[ScriptedPass, ...] = ()
    answer: str

    @field_validator("task")
    @classmethod
    def _task_is_a_pattern(cls, value: str) -> str:
        check_pattern(value)
        return value

    @field_validator("answer")
    @classmethod
    def _answer_parses(cls, value: str) -> str:
        check_values(value)
        return value

    @property
    def shown_title(self) -> str:
        return self.title or self.task


class _Scripts(_Part):
    scripts: tuple[Script, ...] = Field(min_length=1, max_length=MAX_SCRIPTS)


class _Loader(yaml.SafeLoader):
    """Safe YAML without aliases, which could blow a small text up to gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not allowed")
        return super().compose_node(parent, index)


@functools.lru_cache(maxsize=64)
def scripts_from(text: str) -> tuple[Script, ...]:
    """The scripts in this YAML; raises ValueError that names the place."""
    if len(text) > MAX_SCRIPT:
        raise ValueError(f"the script has {len(text)} characters, at most {MAX_SCRIPT} are allowed")
    try:
        value = yaml.load(text, Loader=_Loader)  # noqa: S506 (a SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"not valid YAML: {error}") from error
    try:
        return _Scripts.model_validate(value).scripts
    except ValidationError as error:
        raise ValueError("; ".join(_sentence(fault) for fault in error.errors()[:5])) from error


def validate_script(text: str) -> None:
    """For forms: raises ValueError that names the place and the fault of the first wrong things."""
    scripts_from(text)


def _sentence(fault: Any) -> str:
    place = ""
    for step in fault["loc"]:
        place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else str(step)
    message = str(fault["msg"]).removeprefix("Value error, ")
    return f"{place or 'the script'}: {message}"
