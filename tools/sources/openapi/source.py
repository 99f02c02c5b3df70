"""The source of tools from one API description, for plugins; an organization connects its own in the admin."""

from collections.abc import Callable, Mapping, Sequence

from tools.contract import Level, Tool
from tools.sources.base import ToolSource
from tools.sources.openapi.description_reader import read_description
from tools.sources.openapi.operations import ApiOperation
from tools.sources.openapi.tool import ApiConnection, OpenAPITool


class OpenAPISource(ToolSource):
    """The operations of an API as tools.

    Args:
        connection: its settings; `connection.source` is the name of the source.
        load: returns the text of the description; called once, at the start.
        levels: by the tool's name, in place of the level that the operation's method suggests.
    """

    def __init__(
        self, connection: ApiConnection, load: Callable[[], str], levels: Mapping[str, Level] | None = None
    ) -> None:
        self.name = connection.source
        self.left_out: Sequence[str] = ()
        self._connection = connection
        self._load = load
        self._levels = levels or {}
        self._tools: list[Tool] = []

    def start(self) -> None:
        """Read the description; an operation that cannot be used is left out.

        Raises:
            DocumentError: the text is not a supported description.
        """
        if self._tools:
            return
        found = read_description(self._load(), base_url=self._connection.base_url)
        self._tools = [self._build(operation) for operation in found.operations]
        self.left_out = [f"{each.where}: {each.reason}" for each in found.skipped]

    def _build(self, operation: ApiOperation) -> Tool:
        return OpenAPITool(operation, self._connection, self._levels.get(f"{self.name}.{operation.name}"))

    def tools(self) -> list[Tool]:
        return list(self._tools)

    def shutdown(self) -> None:
        self._tools = []
