"""A tool of a server, with the definition and level that an admin accepted."""

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from typing_extensions import override

from tools.contract import (
    ErrorCode,
    Level,
    Preview,
    ToolContext,
    ToolError,
    ToolResult,
    find_named_hosts,
    fingerprint,
)
from tools.contract.sentences import format_name, format_params
from tools.schemas.adaptation import rename_keys
from tools.sources.external_tool import ExternalTool
from tools.sources.mcp.calls import McpCall, send_call
from tools.sources.mcp.definitions import Definition
from tools.sources.mcp.display_text import clean_line
from tools.sources.mcp.errors import ConnectionLostError, build_read_error, connection_lost_error
from tools.sources.mcp.loop import LOOP
from tools.sources.mcp.results import build_result
from tools.sources.mcp.server_process import HIDDEN
from tools.sources.mcp.servers import Server
from tools.sources.risks import OPEN_WORLD, explain_embedded_requests
from tools.toolbox.secrecy import hide_secrets, hide_secrets_in_error

MAX_PROGRESS_LENGTH = 200
SHARE_OF_TIME = 0.95
"""The tool gives up after this share of its timeout, because its own error says more than the
executor's."""


class McpTool(ExternalTool):
    """One tool of one server.

    Args:
        source: the source's name, e.g. "time" for the tool `time.get_current_time`.
        level: set by an admin; the server's hints have no effect.
    """

    version = "1.0"
    timeout_s: float = 60.0
    account: tuple[str, ...] = ()
    """The account that calls the server, without secrets; a part of the definition's hash."""

    def __init__(self, definition: Definition, server: Server, source: str, level: Level) -> None:
        self.name = f"{source}.{definition.legal_name}"
        self.description = definition.description
        self.source = source
        self.author = source
        self.level = level
        self.carries_requests = explain_embedded_requests(vars(definition)) is not None
        self.open_world = definition.annotations.get(OPEN_WORLD) is True
        self._definition = definition
        self._server = server

    @cached_property
    @override
    def schema(self) -> dict[str, Any]:
        return dict(self._definition.input_schema)

    @cached_property
    @override
    def definition_hash(self) -> str:
        promise = [
            self.name,
            self.version,
            self.level.value,
            self.schema,
            self._definition.hash,
            self._server.place_hash,
        ]
        return fingerprint([*promise, self.account])

    @property
    @override
    def output_schema(self) -> Mapping[str, Any] | None:
        return self._definition.output_schema

    @override
    def hosts(self, params: dict[str, Any]) -> frozenset[str]:
        """Return the hosts that the params name, because the server may connect to them."""
        return find_named_hosts(params, self.address_params)

    @override
    def sentence(self, params: dict[str, Any], preview: Preview) -> str:
        """Describe the call by the tool's name, because the server chooses its title."""
        return f"Use {format_name(self.name)}{format_params(params)}"

    @override
    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolResult:
        secrets = self._server.secrets
        try:
            response = await self._call_server(params, context)
            return hide_secrets(build_result(response, self._definition, self.name), secrets)
        except ToolError as error:
            is_failed_read = error.code is ErrorCode.OUTCOME_UNKNOWN and not self._is_write(context)
            told = build_read_error(self._server.title, error) if is_failed_read else error
            raise hide_secrets_in_error(told, secrets) from error

    async def _call_server(self, params: dict[str, Any], context: ToolContext) -> Any:
        """Call the tool; repeat a read once if its connection was lost, never a write."""
        is_write = self._is_write(context)
        seconds = self.timeout_s * SHARE_OF_TIME
        ends_at = time.monotonic() + seconds
        call = McpCall(
            definition=self._definition,
            params=rename_keys(params, self._definition.shown_names),
            seconds=seconds,
            on_progress=lambda *values: self._report(context, *values),
            logger=context.logger,
        )
        try:
            try:
                return await LOOP.run(send_call(self._server, call))
            except ConnectionLostError:
                if is_write:
                    raise
            again = replace(call, seconds=ends_at - time.monotonic())
            return await LOOP.run(send_call(self._server, again))
        except ConnectionLostError as error:
            raise connection_lost_error(self._server.title, error, is_write) from error
        except TimeoutError:
            raise ToolError(
                ErrorCode.TIMEOUT,
                f"{self._server.title} did not respond within {seconds:g} s.",
                recovery_hint="Ask for less at once, or try again later.",
            ) from None

    def _is_write(self, context: ToolContext) -> bool:
        return (context.level or self.level) is not Level.READ

    def _report(
        self, context: ToolContext, progress: float, total: float | None, text: str | None
    ) -> None:
        line = clean_line(text or "", MAX_PROGRESS_LENGTH)
        for secret in self._server.secrets:
            line = line.replace(secret, HIDDEN)
        known = total is not None and total > 0
        context.progress(
            progress / total if known and total else 0.0, line or self.running_summary({})
        )
