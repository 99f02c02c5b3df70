"""A tool built from one operation of an API and the connection's settings."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from tools.contract import (
    ErrorCode,
    Level,
    Preview,
    ToolContext,
    ToolError,
    ToolResult,
    fingerprint,
)
from tools.contract.sentences import quote_whole
from tools.network import ClientResponse, NetworkLimits, get_host, read_url, request
from tools.sources.external_tool import ExternalTool
from tools.sources.openapi.authentication import (
    TOKEN_CACHE,
    AuthenticationSettings,
    RequestCredentials,
    TokenCache,
    authenticate,
    discard_token,
)
from tools.sources.openapi.deadline import Deadline
from tools.sources.openapi.operations import ApiOperation
from tools.sources.openapi.requests import ApiRequest, build_request
from tools.sources.openapi.responses import build_result, raise_for_status
from tools.sources.risks import explain_embedded_requests
from tools.toolbox.secrecy import hide_secrets, hide_secrets_in_error

SHARE_OF_TIME = 0.95
"""The share of its timeout after which the tool gives up, because the executor could not stop a
request that is under way."""
_MAX_RESPONSE_SIZE = 4_000_000
_VERBS = {
    "GET": "Read",
    "HEAD": "Look at",
    "OPTIONS": "Ask about",
    "DELETE": "Delete",
    "PUT": "Put",
    "PATCH": "Change",
}


@dataclass(frozen=True)
class ApiConnection:
    """An admin's settings for one API.

    Attributes:
        source: the part of the tools' names before the dot.
        base_url: scheme, host and base path of all operations; no param can change it.
        title: the connection's name for people.

    Raises:
        ToolError: INVALID_PARAMETER, `base_url` contains a query or a fragment, which would swallow
            the operations' paths.
    """

    source: str
    base_url: str
    title: str = ""
    authentication: AuthenticationSettings = field(default_factory=AuthenticationSettings)
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        if "?" in self.base_url or "#" in self.base_url:
            raise ToolError(
                ErrorCode.INVALID_PARAMETER,
                "The base address contains a query or a fragment.",
                expected="scheme, host and path, such as https://api.example.com/v1",
                recovery_hint="An admin must correct the address of the operations.",
                attempted=False,
            )

    @property
    def path(self) -> str:
        """The percent-encoded base path, without a final slash; ToolError if it is invalid."""
        return read_url(self.base_url).raw_path.decode("ascii").rstrip("/")

    @property
    def host(self) -> str:
        """The host in lower case, as in `tools.network`; ToolError if the address is invalid."""
        return get_host(read_url(self.base_url))

    @property
    def server(self) -> str:
        """The host, with the port unless it is the default; ToolError if the address is invalid."""
        return read_url(self.base_url).netloc.decode("ascii")


class OpenAPITool(ExternalTool):
    """A tool that sends one request for each call.

    It is not open world: every call, including its redirects, goes to the host of the base address,
    which an admin chose. If its params name another address, the API may connect to it, and the
    gate checks that.

    Args:
        level: the admin's level; None for the inferred one. For an operation that embeds other
            requests, the admin's level counts only if the inferred level was destructive when they
            chose, because only then had they seen the reason. Otherwise, the operation is
            destructive.
        tokens: the cache of OAuth 2 access tokens.
    """

    def __init__(
        self,
        operation: ApiOperation,
        connection: ApiConnection,
        level: Level | None = None,
        tokens: TokenCache = TOKEN_CACHE,
    ) -> None:
        self.operation = operation
        self.connection = connection
        self.name = f"{connection.source}.{operation.name}"
        self.description = operation.description
        self.carries_requests = explain_embedded_requests(vars(operation)) is not None
        is_explained = operation.level is Level.DESTRUCTIVE or not self.carries_requests
        self.level = (level or operation.level) if is_explained else Level.DESTRUCTIVE
        self.author = self.source = connection.source
        self.timeout_s: float = connection.timeout_s
        self._tokens = tokens

    @cached_property
    def schema(self) -> dict[str, Any]:
        return self.operation.params

    @cached_property
    def definition_hash(self) -> str:
        """The hash of the definition, level, address, account and param places, without secrets."""
        operation = self.operation.to_json()
        selected = {key: operation[key] for key in ("key", "placements", "body")}
        signed = asdict(self.connection.authentication)
        base = {
            **selected,
            "base_url": self.connection.base_url,
            "level": self.level.value,
            "authentication": signed,
        }
        function = {"name": self.name, "description": self.description, "parameters": self.schema}
        return fingerprint({**base, **function})

    def check_params(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Return canonical params without defaults, because the API applies them.

        Raises:
            ToolError: MISSING_PARAM or INVALID_PARAMETER, also for a value that cannot be part of a
                request.
        """
        params = super().check_params(raw)
        build_request(
            self.operation, params, dict.fromkeys(self.connection.authentication.body_names, "")
        )
        return params

    def sentence(self, params: Mapping[str, Any], preview: Preview) -> str:
        """Describe the call and the fixed query: `Read: “GET /v1/pets/7” at “api.example.com”`."""
        verb = _VERBS.get(self.operation.method, "Send")
        request = quote_whole(self._describe_request(build_request(self.operation, params)))
        return f"{verb}: {request} at {quote_whole(self.connection.server)}"

    def running_summary(self, params: Mapping[str, Any]) -> str:
        return f"{self._describe_request(build_request(self.operation, params))}…"

    def execute(self, params: Mapping[str, Any], context: ToolContext) -> ToolResult:
        deadline = Deadline(self.timeout_s * SHARE_OF_TIME)
        credentials = self._authenticate(context, deadline)
        outgoing = build_request(self.operation, params, credentials.body)
        try:
            response = self._send(outgoing, credentials, context, deadline)
            if response.status == 401 and self._prepare_retry(context):
                credentials = self._authenticate(context, deadline)
                response = self._send(outgoing, credentials, context, deadline)
            raise_for_status(
                response, self._describe_request(outgoing), has_side_effects=self._is_write(context)
            )
        except ToolError as error:
            raise hide_secrets_in_error(error, credentials.secrets) from error
        return hide_secrets(
            build_result(response, self._describe_request(outgoing)), credentials.secrets
        )

    def _authenticate(self, context: ToolContext, deadline: Deadline) -> RequestCredentials:
        return authenticate(self.connection.authentication, context, deadline, self._tokens)

    def _prepare_retry(self, context: ToolContext) -> bool:
        """Discard the refused token; return True if the call is a read that may be retried."""
        return discard_token(
            self.connection.authentication, context, self._tokens
        ) and not self._is_write(context)

    def _is_write(self, context: ToolContext) -> bool:
        return (context.level or self.level).has_side_effects

    def _send(
        self,
        outgoing: ApiRequest,
        credentials: RequestCredentials,
        context: ToolContext,
        deadline: Deadline,
    ) -> ClientResponse:
        base = self.connection.base_url.rstrip("/")
        query = "&".join(filter(None, [outgoing.query, credentials.query]))
        return request(
            outgoing.method,
            f"{base}{outgoing.path}{'?' if query else ''}{query}",
            reach=replace(context.reach, allowed=frozenset()),
            headers=_merge_headers(outgoing.headers, credentials.headers),
            body=outgoing.body,
            limits=NetworkLimits(total_s=deadline.remaining(), response_bytes=_MAX_RESPONSE_SIZE),
            repeatable=not self._is_write(context),
        )

    def _describe_request(self, outgoing: ApiRequest) -> str:
        query = f"?{outgoing.fixed_query}" if outgoing.fixed_query else ""
        return f"{outgoing.method} {self.connection.path}{outgoing.path}{query}"


def _merge_headers(headers: Mapping[str, str], credentials: Mapping[str, str]) -> dict[str, str]:
    """Merge the headers; credentials replace params of the same name, but cookies are combined."""
    lower = {name.lower() for name in credentials}
    selected = {name: value for name, value in headers.items() if name.lower() not in lower}
    joined = {"Accept": "application/json, text/*;q=0.8, */*;q=0.5", **selected, **credentials}
    if "Cookie" in headers and "Cookie" in credentials:
        joined["Cookie"] = f"{headers['Cookie']}; {credentials['Cookie']}"
    return joined
