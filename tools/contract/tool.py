"""Base class of all tools: a name, a level, params, and one method that does the work."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from tools.contract.canonical import fingerprint
from tools.contract.context import ToolContext
from tools.contract.declarations import Example, settle_value
from tools.contract.level import Level
from tools.contract.limits import LONGEST_CACHED_S, LONGEST_TIMEOUT_S, RateLimit
from tools.contract.named_hosts import find_address_params
from tools.contract.outside_text import OutsideText
from tools.contract.params import NoParams, canonical_params, check_model
from tools.contract.preview import Preview
from tools.contract.result import ToolResult
from tools.contract.sentences import format_params, format_title
from tools.contract.suspension import Suspend
from tools.contract.values import Number, StoredObject, Text
from tools.schemas.models import build_schema
from tools.schemas.references import inline_references
from tools.schemas.types import describe_type


@dataclass(frozen=True)
class Parameter:
    """One parameter of a tool, with a self-contained schema without references."""

    name: str
    type: str
    description: str
    required: bool
    schema: Mapping[str, Any]


class Tool(ABC):
    """Base class of all tools: set the class attributes and implement `execute`.

    A tool from an outside source sets the attributes on the instance.

    Attributes:
        name: `category.toolName`.
        description: written for the model.
        level: destructive by default.
        version: `name@version` identifies the tool.
        modes: None means every mode; an empty set means a system tool, which is never offered to a
            model.
        capabilities, features: the capabilities that the employee needs, and the features that the
            organization's plan must include.
        Params: the model of the params.
        Output: the model of the result's data; None means that it is not declared.
        idempotent: repeating the same call has no further effect.
        transactional: writes only Gadget's own database, at most 1,000 rows, inside the engine's
            transaction.
        volatile: the same call may be repeated right away (clocks, polling).
        open_world: contacts addresses chosen by its params.
        returns_outside_text: its results may hold text that strangers wrote or people uploaded;
            this is assumed of every open-world tool.
        destination_params: names, at every depth, of params that hold a recipient, a destination or
            an amount. Usual names, such as `recipient` or `amount`, need not be listed.
        plain_params: paths of params that do not name anything, whatever their values look like.
        carries_requests: its params may hold other requests (batch, GraphQL, RPC), and its level
            takes them into account. If this is False, a call of an outside tool that holds other
            requests is destructive.
        suspends: may return a `Suspend` instead of a result, and then waits for a person or another
            employee.
        cacheable_s: seconds for which the same call in the same organization gets the cached
            result; 0 means never.
        rate_limit: the limit of calls for each organization.
        timeout_s: seconds that one call may take; None means the toolbox's default.
        source: the tool's origin for people: "built in", a plugin, or a connected source.
    """

    name: Annotated[Text, Field(max_length=120), Example('"mail.send"')]
    description: Annotated[Text, Example('"Send a letter to people by name."')]
    display_name: Annotated[Text, Example('"Send a letter"')] = ""
    level: Annotated[Level, Example("Level.READ")] = Level.DESTRUCTIVE
    version: Annotated[Text, Field(max_length=40), Example('"1.0"')] = "1.0"
    author: Annotated[Text, Example('"Ledger & Daughters"')] = "Gadget"
    Params: Annotated[type[BaseModel], Example("a subclass of pydantic.BaseModel")] = NoParams
    Output: Annotated[type[BaseModel] | None, Example("a subclass of pydantic.BaseModel")] = None
    capabilities: Annotated[frozenset[Text], Example('frozenset({"payroll"})')] = frozenset()
    features: Annotated[frozenset[Text], Example('frozenset({"reports"})')] = frozenset()
    modes: Annotated[
        frozenset[Annotated[Text, Field(min_length=1, max_length=40)]] | None,
        Example('frozenset({"research"})'),
    ] = None
    idempotent: Annotated[bool, Example("True")] = False
    transactional: Annotated[bool, Example("True")] = False
    volatile: Annotated[bool, Example("True")] = False
    open_world: Annotated[bool, Example("True")] = False
    returns_outside_text: Annotated[bool, Example("True")] = False
    destination_params: Annotated[frozenset[Text], Example('frozenset({"recipient"})')] = (
        frozenset()
    )
    plain_params: Annotated[frozenset[Text], Example('frozenset({"note"})')] = frozenset()
    carries_requests: Annotated[bool, Example("True")] = False
    suspends: Annotated[bool, Example("True")] = False
    cacheable_s: Annotated[Number, Field(ge=0, le=LONGEST_CACHED_S), Example("60")] = 0.0
    rate_limit: Annotated[RateLimit | None, Example("RateLimit(10, 60)")] = None
    timeout_s: Annotated[
        Annotated[Number, Field(gt=0, le=LONGEST_TIMEOUT_S)] | None, Example("30.0")
    ] = None
    source: Annotated[Text, Example('"built in"')] = "built in"
    do_not_call_in_templates: Annotated[Literal[True], Example("True")] = True
    """Keeps Django templates from calling a tool that is callable: pages show the tool itself."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; if the tool is registered, check the value as at registration."""
        object.__setattr__(self, name, settle_value(self, name, value))

    @abstractmethod
    def execute(
        self, params: Any, context: ToolContext
    ) -> ToolResult | str | Suspend | Awaitable[ToolResult | str | Suspend]:
        """Do the work; this method may be `def` or `async def`.

        Args:
            params: an instance of `Params`.

        Raises:
            ToolError: a failure that is shown to the model.
        """

    def validate(self, params: Any) -> None:  # noqa: B027 - overriding it is optional
        """Check rules that the schema cannot express; raise ToolError to refuse the params."""

    def preview(self, params: Any, context: ToolContext) -> Preview | None:
        """Compute the effect that `execute` would have now; return None if it is unknown.

        A transactional tool locks its targets here, in the order of their ids, if a transaction is
        open.

        Raises:
            NothingToDo: the effect already exists.
            ToolError: the call cannot work, for example because its target is missing.
        """
        return None

    def hosts(self, params: Any) -> frozenset[Text] | None:
        """List the hosts that a call of an open-world tool would contact; None if they are unknown.

        For other tools from outside, the gate searches the params for addresses
        (`find_named_hosts`).
        """
        return None

    def sentence(self, params: Any, preview: Preview) -> Text:
        """Write the card's sentence from the params and the effect, never from the model's text."""
        values = params.model_dump(mode="json")
        return f"Use {format_title(self.title)}{format_params(values)}"

    def running_summary(self, params: Any) -> Text:
        """Write the panel's line for a call that is running."""
        return f"{self.title}…"

    def start(self) -> None:  # noqa: B027 - overriding it is optional
        """Prepare the tool; called once, before its first call."""

    def shutdown(self) -> None:  # noqa: B027 - overriding it is optional
        """Release the tool's resources; called once, when the process ends."""

    @property
    def id(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def title(self) -> str:
        """The name shown to people; an `OutsideText` unless the tool ships with Gadget."""
        title = self.display_name or self.name
        return OutsideText(title) if self.is_from_outside else title

    @property
    def category(self) -> str:
        return self.name.partition(".")[0]

    @property
    def has_side_effects(self) -> bool:
        return self.level.has_side_effects

    @property
    def is_async(self) -> bool:
        """True if `execute` is `async def`, so that it can be cancelled at its timeout."""
        return inspect.iscoroutinefunction(self.execute)

    @property
    def is_system(self) -> bool:
        return self.modes is not None and not self.modes

    @property
    def is_from_outside(self) -> bool:
        """True if the tool belongs to a plugin or a connected source, and does not ship with
        Gadget."""
        return self.source != Tool.source

    @cached_property
    def address_params(self) -> frozenset[str]:
        """Names of the params, at every depth, that hold addresses or hosts."""
        return find_address_params(self.schema)

    @property
    def has_outside_results(self) -> bool:
        """True if values in the tool's results may come from outside the organization."""
        return self.open_world or self.returns_outside_text

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the params."""
        return build_schema(self.Params)

    @property
    def definition(self) -> dict[str, Any]:
        """The definition for the model: {type, function: {name, description, parameters}}."""
        function = {"name": self.name, "description": self.description, "parameters": self.schema}
        return {"type": "function", "function": function}

    @cached_property
    def definition_hash(self) -> str:
        """A hash of what the tool declares: name, version, description, level and parameters."""
        promise = {
            "name": self.name,
            "version": self.version,
            "description": " ".join(self.description.split()),
            "level": self.level.value,
            "parameters": self.schema,
        }
        return fingerprint(promise)

    @property
    def parameters(self) -> list[Parameter]:
        """The params as a list, for people."""
        schema, required = self.schema, self.schema.get("required", [])
        parts = {
            name: inline_references(part, schema) for name, part in schema["properties"].items()
        }
        return [
            Parameter(
                name,
                describe_type(part, schema),
                part.get("description", ""),
                name in required,
                part,
            )
            for name, part in parts.items()
        ]

    @cached_property
    def output_schema(self) -> Mapping[str, Any] | None:
        """JSON schema of the result's data; None if the tool declares no output."""
        return build_schema(self.Output) if self.Output is not None else None

    def check_params(self, raw: dict[str, Any]) -> StoredObject:
        """Validate the params and return them in canonical form: defaults applied, plain JSON.

        Raises:
            ToolError: MISSING_PARAM, INVALID_PARAMETER, or the error of `validate`.
            ValueError: loading the canonical form gives different params.
        """
        checked = check_model(self.Params, raw, self.name)
        self.validate(checked)
        return canonical_params(checked)

    def load_params(self, canonical: dict[str, Any]) -> Any:
        """Load canonical params into an instance of `Params`."""
        return self.Params.model_validate(canonical)


def name_category(tool: Tool) -> str:
    """Return the tool's category for people; an `OutsideText` unless the tool ships with Gadget."""
    return OutsideText(tool.category) if tool.is_from_outside else tool.category


def name_tool(tool: Tool | None, name: str) -> str:
    """Return the tool's title or, if there is no tool, the name in the call, which a model or an
    agent may have invented."""
    if tool is None:
        return OutsideText(name)
    return OutsideText(tool.title) if tool.is_from_outside else tool.title
