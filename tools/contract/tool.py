"""What a tool is: a name, a level, params, and one method that does the work."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from .addresses import address_params
from .canonical import canonical_json, fingerprint
from .context import ToolContext
from .level import Level
from .limits import RateLimit
from .preview import Preview
from .result import ToolResult
from .schema import NoParams, canonical_params, check, schema_of
from .schema_words import inline_references, type_in_words
from .suspend import Suspend


@dataclass(frozen=True)
class Parameter:
    """One parameter in the list form; its schema stands by itself, without references."""

    name: str
    type: str
    description: str
    required: bool
    schema: Mapping[str, Any]


class Tool(ABC):
    """Base of all tools; set the class attributes and write `execute`. A tool from outside sets them on the instance.

    Attributes:
        name: `category.toolName`.
        description: written for the model.
        level: missing means destructive.
        version: `name@version` identifies the tool.
        modes: None = every mode; an empty set = a system tool, never offered to a model.
        capabilities, features: what it demands of the employee and of the organisation's plan.
        transactional: writes only Gadget's own database, at most 1,000 rows; runs inside the engine's transaction.
        volatile: an equal call may be repeated at once (clocks, polling).
        open_world: reaches addresses chosen by its params.
        carries_requests: its params may hold requests of their own (a batch, GraphQL, RPC), and whoever set its level
            knew it; without that, a call of a tool from outside that carries any is destructive.
        suspends: may return a `Suspend` in the place of a result, and waits for a person or another employee then.
        cacheable_s: seconds for which an equal call of the same organisation gets the same result; 0 = never.
        rate_limit: how often each organisation may call it.
        timeout_s: seconds that one call may take; None means the toolbox's default.
        source: where it comes from, for people: "built in", a plugin, or what an organisation has connected.
    """

    name: str
    description: str
    display_name: str = ""
    level: Level = Level.DESTRUCTIVE
    version: str = "1.0"
    author: str = "Gadget"
    Params: type[BaseModel] = NoParams
    Output: type[BaseModel] | None = None
    capabilities: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    modes: frozenset[str] | None = None
    idempotent: bool = False
    transactional: bool = False
    volatile: bool = False
    open_world: bool = False
    carries_requests: bool = False
    suspends: bool = False
    cacheable_s: float = 0
    rate_limit: RateLimit | None = None
    timeout_s: float | None = None
    source: str = "built in"

    do_not_call_in_templates = True
    """A template calls whatever can be called, and some tools can; a page shows the tool itself."""

    @abstractmethod
    def execute(
        self, params: Any, context: ToolContext
    ) -> ToolResult | str | Suspend | Awaitable[ToolResult | str | Suspend]:
        """Do the work; `def` or `async def`.

        Args:
            params: an instance of `Params`.

        Raises:
            ToolError: a failure that the model is told about.
        """

    def validate(self, params: Any) -> None:  # noqa: B027 - may be left as it is
        """Check what the schema cannot say; raise ToolError to refuse."""

    def preview(self, params: Any, context: ToolContext) -> Preview | None:
        """What `execute` would do now, without doing it; None if that cannot be told.

        A transactional tool locks its targets here, in the order of their ids, when it runs in a transaction.
        """
        return None

    def hosts(self, params: Any) -> frozenset[str] | None:
        """For an open-world tool, the hosts that the call would reach; None if that cannot be told.

        Of a tool from outside that is not open world, the gate looks for addresses in its params (`named_hosts`).
        """
        return None

    def sentence(self, params: Any, preview: Preview) -> str:
        """One sentence for the card, made from the params and the effect, never from the model's words."""
        values = canonical_json(params.model_dump(mode="json"))
        return f"Use {self.title}: {values}" if values != "{}" else f"Use {self.title}"

    def running_summary(self, params: Any) -> str:
        """What the panel says meanwhile."""
        return f"{self.title}…"

    def start(self) -> None:  # noqa: B027 - may be left as it is
        """Called once, before the first call."""

    def shutdown(self) -> None:  # noqa: B027 - may be left as it is
        """Called once, when the process ends."""

    @property
    def id(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def title(self) -> str:
        """The name for people."""
        return self.display_name or self.name

    @property
    def category(self) -> str:
        return self.name.partition(".")[0]

    @property
    def has_side_effects(self) -> bool:
        return self.level.has_side_effects

    @property
    def is_async(self) -> bool:
        """True if `execute` can be cancelled at its timeout."""
        return inspect.iscoroutinefunction(self.execute)

    @property
    def is_system(self) -> bool:
        return self.modes is not None and not self.modes

    @property
    def is_from_outside(self) -> bool:
        """True if Gadget did not write it: a plugin's tool, or one that an organization connected."""
        return self.source != Tool.source

    @cached_property
    def address_params(self) -> frozenset[str]:
        """Names of its params, at every depth, that hold addresses or hosts."""
        return address_params(self.schema)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the params."""
        return schema_of(self.Params)

    @property
    def definition(self) -> dict[str, Any]:
        """What the model is shown: {"type": "function", "function": {name, description, parameters}}."""
        function = {"name": self.name, "description": self.description, "parameters": self.schema}
        return {"type": "function", "function": function}

    @cached_property
    def definition_hash(self) -> str:
        """Changes whenever what the tool promises changes; titles and formatting do not count."""
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
        """The params in the list form."""
        required = self.schema.get("required", [])
        parts = {name: inline_references(part, self.schema) for name, part in self.schema["properties"].items()}
        return [
            Parameter(name, type_in_words(part), part.get("description", ""), name in required, part)
            for name, part in parts.items()
        ]

    @property
    def output_schema(self) -> Mapping[str, Any] | None:
        """JSON schema of the result's data; None if the tool promises nothing."""
        return schema_of(self.Output) if self.Output is not None else None

    def check_params(self, raw: dict[str, Any]) -> dict[str, Any]:
        """The canonical params: validated, defaults applied, as plain JSON.

        Raises:
            ToolError: MISSING_PARAM, INVALID_PARAMETER, or what `validate` refuses with.
            ValueError: the tool's `Params` reads its own canonical form as something else.
        """
        checked = check(self.Params, raw, self.name)
        self.validate(checked)
        return canonical_params(checked)

    def load_params(self, canonical: dict[str, Any]) -> Any:
        """The instance of `Params` for canonical params."""
        return self.Params.model_validate(canonical)
