"""A tool made of one operation of an outside API and of the connection's settings."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from tools.contract import ErrorCode, Level, Preview, ToolContext, ToolError, ToolResult, fingerprint
from tools.network import Answer, NetworkLimits, host_of, read_url, request
from tools.sources.outside import OutsideTool
from tools.sources.risks import carried_by
from tools.toolbox.secrecy import error_without_secrets, without_secrets

from .answers import refuse_failure, result_of
from .authentication import TOKENS, Authentication, Proof, Tokens, forget, prove
from .deadline import Deadline
from .operations import Operation
from .requests import Request, made_request

SHARE_OF_TIME = 0.95
"""Of the tool's timeout, after which it gives up by itself: whoever stops it cannot stop what it sends afterwards."""
_LARGEST_ANSWER = 4_000_000
_VERBS = {"GET": "Read", "HEAD": "Look at", "OPTIONS": "Ask about", "DELETE": "Delete", "PUT": "Put", "PATCH": "Change"}


@dataclass(frozen=True)
class Connection:
    """An admin's settings for one API.

    Attributes:
        source: the part of all tools' names before the dot.
        base_url: scheme, host and the path before every operation's own; params can change none of it.
        title: the connection's name for people.

    Raises:
        ToolError: INVALID_PARAMETER, `base_url` holds a query or a fragment, which would swallow the operation's path.
    """

    source: str
    base_url: str
    title: str = ""
    authentication: Authentication = field(default_factory=Authentication)
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        if "?" in self.base_url or "#" in self.base_url:
            raise ToolError(
                ErrorCode.INVALID_PARAMETER,
                "The base address holds a query or a fragment.",
                expected="scheme, host and path, such as https://api.example.com/v1",
                recovery_hint="An admin has to correct the address of the operations.",
                attempted=False,
            )

    @property
    def path(self) -> str:
        """Percent-encoded, without a slash at its end; ToolError if the base address cannot be read."""
        return read_url(self.base_url).raw_path.decode("ascii").rstrip("/")

    @property
    def host(self) -> str:
        """In lower case, as `tools.network` writes it; ToolError if the base address cannot be read."""
        return host_of(read_url(self.base_url))

    @property
    def server(self) -> str:
        """The host with the port, unless that is the usual one; ToolError likewise."""
        return read_url(self.base_url).netloc.decode("ascii")


class OpenAPITool(OutsideTool):
    """Sends one request for each call.

    It is not open world: every call goes to the host of the base address, which an admin chose, and to no other one,
    redirects included. Where its params name another address, the API may go there: the gate looks at that.

    Args:
        level: what an admin set in the place of the inferred level; None keeps that. An operation that carries other
            requests is destructive as long as it was not inferred to be: then no admin has read why.
        tokens: where OAuth2's access tokens are kept.
    """

    def __init__(
        self, operation: Operation, connection: Connection, level: Level | None = None, tokens: Tokens = TOKENS
    ) -> None:
        self.operation = operation
        self.connection = connection
        self.name = f"{connection.source}.{operation.name}"
        self.display_name = operation.summary
        self.description = operation.description
        self.carries_requests = bool(carried_by(vars(operation)))
        is_told = operation.level is Level.DESTRUCTIVE or not self.carries_requests
        self.level = (level or operation.level) if is_told else Level.DESTRUCTIVE
        self.author = self.source = connection.title or connection.source
        self.timeout_s: float = connection.timeout_s
        self._tokens = tokens

    @cached_property
    def schema(self) -> dict[str, Any]:
        return self.operation.params

    @cached_property
    def definition_hash(self) -> str:
        """Also over the request that is made: another address, account or place for a param is another promise.

        Another secret of the same account is not.
        """
        told = self.operation.as_json()
        kept = {key: told[key] for key in ("key", "placements", "body")}
        signed = asdict(self.connection.authentication)
        base = {**kept, "base_url": self.connection.base_url, "level": self.level.value, "authentication": signed}
        function = {"name": self.name, "description": self.description, "parameters": self.schema}
        return fingerprint({**base, **function})

    def check_params(self, raw: dict[str, Any]) -> dict[str, Any]:
        """The canonical params; nothing is added, because a default is the API's own business.

        Raises:
            ToolError: MISSING_PARAM or INVALID_PARAMETER, also for what cannot be written in a request.
        """
        params = super().check_params(raw)
        made_request(self.operation, params)
        return params

    def sentence(self, params: Mapping[str, Any], preview: Preview) -> str:
        """E.g. `Delete: DELETE /v1/pets/7 at api.example.com`; a query is shown as far as the operation fixes it."""
        verb = _VERBS.get(self.operation.method, "Send")
        return f"{verb}: {self._line(made_request(self.operation, params))} at {self.connection.server}"

    def running_summary(self, params: Mapping[str, Any]) -> str:
        return f"{self._line(made_request(self.operation, params))}…"

    def execute(self, params: Mapping[str, Any], context: ToolContext) -> ToolResult:
        made = made_request(self.operation, params)
        deadline = Deadline(self.timeout_s * SHARE_OF_TIME)
        proof = self._proof(context, deadline)
        try:
            answer = self._answer(made, proof, context, deadline)
            if answer.status == 401 and self._may_ask_again(context):
                proof = self._proof(context, deadline)
                answer = self._answer(made, proof, context, deadline)
            refuse_failure(answer, self._line(made), has_side_effects=self._writes(context))
        except ToolError as error:
            raise error_without_secrets(error, proof.secrets) from error
        return without_secrets(result_of(answer, self._line(made)), proof.secrets)

    def _proof(self, context: ToolContext, deadline: Deadline) -> Proof:
        return prove(self.connection.authentication, context, deadline, self._tokens)

    def _may_ask_again(self, context: ToolContext) -> bool:
        """A write is never repeated, but the next one gets a fresh token."""
        return forget(self.connection.authentication, context, self._tokens) and not self._writes(context)

    def _writes(self, context: ToolContext) -> bool:
        return (context.level or self.level).has_side_effects

    def _answer(self, made: Request, proof: Proof, context: ToolContext, deadline: Deadline) -> Answer:
        base = self.connection.base_url.rstrip("/")
        query = "&".join(filter(None, [made.query, proof.query]))
        return request(
            made.method,
            f"{base}{made.path}{'?' if query else ''}{query}",
            reach=replace(context.reach, allowed=frozenset()),
            headers=_joined(made.headers, proof.headers),
            body=made.body,
            limits=NetworkLimits(total_s=deadline.left(), answer_bytes=_LARGEST_ANSWER),
            repeatable=not self._writes(context),
        )

    def _line(self, made: Request) -> str:
        return f"{made.method} {self.connection.path}{made.path}{'?' if made.fixed_query else ''}{made.fixed_query}"


def _joined(headers: Mapping[str, str], proof: Mapping[str, str]) -> dict[str, str]:
    """The credentials win over a param of the same name, except that cookies stand side by side."""
    lower = {name.lower() for name in proof}
    kept = {name: value for name, value in headers.items() if name.lower() not in lower}
    joined = {"Accept": "application/json, text/*;q=0.8, */*;q=0.5", **kept, **proof}
    if "Cookie" in headers and "Cookie" in proof:
        joined["Cookie"] = f"{headers['Cookie']}; {proof['Cookie']}"
    return joined
