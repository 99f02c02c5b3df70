"""The configuration file `gadget.yaml`: settings and credentials for the tools of this
installation.

Keys may be written `like_this` or `likeThis`. `${NAME}` is replaced by an environment variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError
from pydantic.alias_generators import to_camel, to_snake

from tools.contract import Environment

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_SERVICES = "services"
_TOP_LEVEL_SERVICES = ("google", "github", "slack")
"""Services that may also be top-level keys."""
_SEARCH = "google.cse"
_LIST_ERRORS = {"tuple_type", "frozen_set_type"}
_Path = tuple[str, ...]


class ConfigError(ValueError):
    """An error in the file; the message names the line, the key and the fix."""


class ToolSettings(BaseModel):
    """The section `tools:` of the file.

    Attributes:
        orchestrator_id: the name of this installation in logs and metrics.
        default_timeout: seconds that a call may take if its tool sets no timeout.
        max_concurrent_calls: calls of one pass that run at the same time.
        log_calls: log one line for each call, without its params.
        disabled: names or ids (`name@1.0`) of tools that nobody may use.
        allow_dynamic_registration: allow registering tools while Gadget runs.
        strict_capabilities: an employee needs all of a tool's capabilities; if false, any one of
            them.
        features_by_tool: features that the organization's plan must have, by tool name or id.
        office: load the tools of the office plugin, which ships with Gadget.
        plugins: names of the entry points in the group `gadget.tools` to load tools from.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=True
    )

    orchestrator_id: str = Field("gadget", pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    default_timeout: float = Field(30.0, gt=0, le=3600)
    max_concurrent_calls: int = Field(10, ge=1, le=100)
    log_calls: bool = True
    disabled: frozenset[str] = frozenset()
    allow_dynamic_registration: bool = True
    strict_capabilities: bool = True
    features_by_tool: dict[str, frozenset[str]] = {}
    office: bool = True
    plugins: tuple[Annotated[str, Field(min_length=1)], ...] = ()


class Config(BaseModel):
    """The content of the file; `services` is flat: {"google.cse": {"api_key": …}}.

    Attributes:
        unset: services left out because environment variables are missing, with the names of these
            variables.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tools: ToolSettings = ToolSettings()
    services: dict[str, dict[str, str]] = Field({}, repr=False)

    _unset: dict[str, tuple[str, ...]] = PrivateAttr(default_factory=dict)

    @property
    def unset(self) -> Mapping[str, tuple[str, ...]]:
        return self._unset

    @property
    def environment(self) -> Environment:
        return Environment(self.services)


def read_config(text: str, variables: Mapping[str, str]) -> Config:
    """Parse the text of a `gadget.yaml`. An unset variable leaves out only the service that uses
    it.

    Args:
        variables: the values of `${NAME}`.

    Raises:
        ConfigError: the text is not valid.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        where = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"line {where}: this is not YAML: {error.problem}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"this is not YAML: {type(error).__name__}") from error
    if root is None:
        return Config()
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError("line 1: expected the keys 'tools:' and 'services:'")
    lines: dict[_Path, int] = {}
    reader = _YamlReader(variables, lines)
    values = reader.read_value(root, ())
    flat = _collect_services(values, lines)
    given = {
        "tools": values.pop("tools", None) or {},
        _SERVICES: {name: flat[name] for name in flat.keys() - reader.unset},
    }
    try:
        config = Config.model_validate({**values, **given})
    except ValidationError as error:
        raise _explain_error(error, lines) from None
    config._unset.update({name: tuple(missing) for name, missing in reader.unset.items()})
    return config


class _YamlReader:
    """A reader of YAML nodes that records the line of each key and fills in `${NAME}`."""

    def __init__(self, variables: Mapping[str, str], lines: dict[_Path, int]) -> None:
        self._variables = variables
        self._lines = lines
        self._plain = yaml.SafeLoader("")
        self._seen: set[yaml.Node] = set()
        self.unset: dict[str, list[str]] = {}

    def read_value(self, node: yaml.Node, path: _Path) -> Any:
        line = self._lines.setdefault(path, node.start_mark.line + 1)
        if node in self._seen:
            raise ConfigError(
                f"line {line}: {'.'.join(path)}: write it out; anchors (&name, *name) are not supported"
            )
        self._seen.add(node)
        if isinstance(node, yaml.MappingNode):
            return {
                self._read_key(key, path): self.read_value(child, (*path, str(key.value)))
                for key, child in node.value
            }
        if isinstance(node, yaml.SequenceNode):
            return [
                self.read_value(child, (*path, str(index)))
                for index, child in enumerate(node.value)
            ]
        if "${" in node.value:
            return _VARIABLE.sub(lambda found: self._fill_variable(found[1], path), node.value)
        if path[0] in (_SERVICES, *_TOP_LEVEL_SERVICES) and node.tag != "tag:yaml.org,2002:null":
            return node.value  # a token like 00123 must not become a number
        try:
            return self._plain.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            raise ConfigError(
                f"line {line}: {'.'.join(path)}: {node.value!r} is not {node.tag!r}"
            ) from error

    def _read_key(self, key: yaml.Node, parent: _Path) -> str:
        path, line = (*parent, str(key.value)), key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise ConfigError(f"line {line}: a key must be plain text")
        if path in self._lines:
            raise ConfigError(
                f"line {line}: {'.'.join(path)} is repeated; it is also in line {self._lines[path]}"
            )
        self._lines[path] = line
        return str(key.value)

    def _fill_variable(self, name: str, path: _Path) -> str:
        if name not in self._variables and path[0] in (_SERVICES, *_TOP_LEVEL_SERVICES):
            self.unset.setdefault(_name_service(path[:-1]), []).append(name)
            return ""
        if name not in self._variables:
            raise ConfigError(
                f"line {self._lines[path]}: {'.'.join(path)} needs the environment variable {name!r}, which is not set"
            )
        return self._variables[name]


def _collect_services(
    values: dict[str, Any], lines: Mapping[_Path, int]
) -> dict[str, dict[str, str]]:
    """Collect the services under `services:` and those at the top level, and remove all of them
    from the values.

    Raises:
        ConfigError: a service is in both places.
    """
    found = dict(_read_services(values.pop(_SERVICES, None) or {}, (_SERVICES,), lines))
    for key in _TOP_LEVEL_SERVICES:
        for name, fields in _read_services(values.pop(key, None) or {}, (key,), lines):
            if name in found:
                raise ConfigError(
                    f"line {lines[(key,)]}: {name} is set here and under 'services:'; keep only one"
                )
            found[name] = fields
    return found


def _name_service(path: _Path) -> str:
    """Return the name of the service at this path; the top-level fields of `google` belong to
    Google's search."""
    name = ".".join(path[1:] if path[0] == _SERVICES else path)
    return _SEARCH if path == ("google",) else name


def _read_services(
    node: Any, here: _Path, lines: Mapping[_Path, int]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each mapping that directly contains values as a service, named by its path."""
    if not isinstance(node, dict):
        raise ConfigError(
            f"line {lines[here]}: {'.'.join(here)} needs keys with values, like 'token: …'"
        )
    fields = {to_snake(key): value for key, value in node.items() if not isinstance(value, dict)}
    for key, value in node.items():
        if isinstance(value, dict):
            yield from _read_services(value, (*here, key), lines)
        elif isinstance(value, list) or here == (_SERVICES,):
            raise ConfigError(
                f"line {lines[(*here, key)]}: {'.'.join((*here, key))} must contain a key with a value"
            )
    if fields:
        yield _name_service(here), {key: value or "" for key, value in fields.items()}


def _explain_error(error: ValidationError, lines: Mapping[_Path, int]) -> ConfigError:
    """Explain the first fault. Quote values only from the section `tools`, because the values of
    services are secret."""
    first = error.errors(include_url=False, include_context=False)[0]
    path = tuple(str(part) for part in first["loc"])
    line = next((lines[known] for known in _list_spellings(path) if known in lines), 1)
    if first["type"] == "extra_forbidden":
        known = ToolSettings.model_fields if path[0] == "tools" else Config.model_fields
        return ConfigError(
            f"line {line}: unknown key {'.'.join(path)!r}; known keys: {', '.join(known)}"
        )
    fault = (
        "expected a list, like [a, b]"
        if first["type"] in _LIST_ERRORS
        else first["msg"][:1].lower() + first["msg"][1:]
    )
    given = f" (given: {first['input']!r})" if path[0] == "tools" else ""
    return ConfigError(f"line {line}: {'.'.join(path)}: {fault}{given}")


def _list_spellings(path: _Path) -> Iterator[_Path]:
    """Yield the ways in which the path of this key may be written in the file, then those of its
    parent keys."""
    for end in range(len(path), 0, -1):
        yield path[:end]
        yield tuple(to_snake(part) for part in path[:end])
