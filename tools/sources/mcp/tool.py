"""A tool of a server: its definition as the admin accepted it, and the level that the admin gave."""

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import mcp_types
from typing_extensions import override

from tools.contract import (
    ErrorCode,
    Level,
    Preview,
    ToolContext,
    ToolError,
    ToolResult,
    canonical_json,
    fingerprint,
    named_hosts,
)
from tools.sources.outside import OutsideTool
from tools.sources.risks import OPEN_WORLD, carried_by
from tools.toolbox.secrecy import error_without_secrets, without_secrets

from .answers import result_of
from .calls import Call, answer_to
from .child import HIDDEN
from .definitions import Definition
from .failures import LostError, lost
from .loop import LOOP
from .schemas import renamed
from .servers import Server
from .words import one_line

LONGEST_PROGRESS = 200
SHARE_OF_TIME = 0.95
"""Of the tool's timeout, after which it gives up by itself, because it can say more than whoever stops it."""


class McpTool(OutsideTool):
    """Uses one tool of one server.

    Args:
        source: the source's name, e.g. "time"; the tool's is `time.get_current_time`.
        level: set by an admin; what the server hints at decides nothing.
    """

    version = "1.0"
    timeout_s: float = 60.0
    account: tuple[str, ...] = ()
    """In whose name the server is asked, without a secret: another one is another promise."""

    def __init__(self, definition: Definition, server: Server, source: str, level: Level) -> None:
        self.name = f"{source}.{definition.legal_name}"
        self.display_name = definition.title
        self.description = definition.description
        self.source = source
        self.author = source
        self.level = level
        self.carries_requests = bool(carried_by(vars(definition)))
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
        promise = [self.name, self.version, self.level.value, self.schema, self._definition.hash, self._server.where]
        return fingerprint([*promise, self.account])

    @property
    @override
    def output_schema(self) -> Mapping[str, Any] | None:
        return self._definition.output_schema

    @override
    def hosts(self, params: dict[str, Any]) -> frozenset[str]:
        """Return the hosts that the params name: the server may go there."""
        return named_hosts(params, self.address_params)

    @override
    def sentence(self, params: dict[str, Any], preview: Preview) -> str:
        """With the tool's own name: its title is the server's word."""
        return f"Use {self.name}: {canonical_json(params)}" if params else f"Use {self.name}"

    @override
    async def execute(self, params: dict[str, Any], context: ToolContext) -> ToolResult:
        secrets = self._server.secrets
        try:
            answer = await self._answer(params, context)
            return without_secrets(result_of(answer, self._definition, self.name), secrets)
        except ToolError as error:
            raise error_without_secrets(error, secrets) from error

    async def _answer(self, params: dict[str, Any], context: ToolContext) -> mcp_types.CallToolResult:
        """A read is asked again once, on a new connection, if the first was lost on the way; nothing else is."""
        level = context.level or self.level
        seconds = self.timeout_s * SHARE_OF_TIME
        ends_at = time.monotonic() + seconds
        call = Call(
            definition=self._definition,
            params=renamed(params, self._definition.shown_names),
            seconds=seconds,
            on_progress=lambda *said: self._report(context, *said),
            logger=context.logger,
        )
        try:
            try:
                return await LOOP.run(answer_to(self._server, call))
            except LostError:
                if level is not Level.READ:
                    raise
            again = replace(call, seconds=ends_at - time.monotonic())
            return await LOOP.run(answer_to(self._server, again))
        except LostError as error:
            raise lost(self._server.title, error.fault, level is not Level.READ) from error
        except TimeoutError:
            raise ToolError(
                ErrorCode.TIMEOUT,
                f"{self._server.title} did not answer within {seconds:g} s.",
                recovery_hint="Ask for less at once, or try again later.",
            ) from None

    def _report(self, context: ToolContext, progress: float, total: float | None, text: str | None) -> None:
        told = one_line(text or "", LONGEST_PROGRESS)
        for secret in self._server.secrets:
            told = told.replace(secret, HIDDEN)
        known = total is not None and total > 0
        context.progress(progress / total if known and total else 0.0, told or self.running_summary({}))
