"""A source of one API's tools, for plugins; organizations connect their APIs in the admin."""

from collections.abc import Callable, Iterator, Mapping

from tools.contract import Level, Tool
from tools.sources.base import LoadedSource
from tools.sources.openapi.description_reader import read_description
from tools.sources.openapi.tool import ApiConnection, OpenAPITool


class OpenAPISource(LoadedSource):
    """The operations of an API as tools.

    Args:
        connection: the API's settings; `connection.source` is the name of the source.
        load: returns the text of the description; called once, at the start.
        levels: {tool name: level}, in place of the inferred level.
    """

    def __init__(
        self,
        connection: ApiConnection,
        load: Callable[[], str],
        levels: Mapping[str, Level] | None = None,
    ) -> None:
        super().__init__(connection.source)
        self._connection = connection
        self._load = load
        self._levels = levels or {}

    def _load_tools(self) -> Iterator[Tool]:
        """Read the description; an operation that cannot be used is left out.

        Raises:
            DocumentError: the text is not a supported description.
        """
        found = read_description(self._load(), base_url=self._connection.base_url)
        self.left_out = [f"{each.where}: {each.reason}" for each in found.skipped]
        for each in found.operations:
            yield OpenAPITool(each, self._connection, self._levels.get(f"{self.name}.{each.name}"))
