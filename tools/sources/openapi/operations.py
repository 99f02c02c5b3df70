"""Operations of an API in the form that their tools need: plain data that is stored in the
database."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from tools.contract import Level, fingerprint
from tools.sources.openapi.schemas import Names


@dataclass(frozen=True)
class Placement:
    """The place of one param in a request.

    Attributes:
        shown: the param's name for the model.
        name: the API's own name.
        place: path, query, header or cookie.
        style: simple, form, spaceDelimited, pipeDelimited, tabDelimited or deepObject.
        explode: write each entry separately.
        as_json: write the value as JSON.
        names: the API's own names inside the value.
        refused: the lower-case keys that a spread object may not have: API keys, and names that the
            operation fixes.
    """

    shown: str
    name: str
    place: str
    style: str = "form"
    explode: bool = True
    as_json: bool = False
    names: Names = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    @property
    def spread(self) -> str:
        """Query or cookie if each property of an object becomes a parameter there; else empty."""
        is_spread = self.explode and self.style != "deepObject" and not self.as_json
        return self.place if is_spread and self.place in ("query", "cookie") else ""


@dataclass(frozen=True)
class OperationBody:
    """The body of an operation's requests.

    Attributes:
        media_type: JSON, a form or text.
        shown: the param that holds the whole body; empty if each of its fields is a param.
        required: send the body even if no field is given.
        names: the API's own names of the body's fields; all fields if `shown` is empty.
    """

    media_type: str
    shown: str = ""
    required: bool = False
    names: Names = field(default_factory=dict)


@dataclass(frozen=True)
class ApiOperation:
    """One operation of an API.

    Attributes:
        key: method and path, unique in the description: `GET /pets/{id}`.
        name: the part of the tool's name after the dot; unique in the description.
        description: for the model, at most 1,024 characters.
        level, level_reason: the inferred level, and the reason for the admin.
        params: a JSON schema without references and credentials.
        placements, body: the places of the params.
    """

    key: str
    method: str
    path: str
    name: str
    operation_id: str
    summary: str
    description: str
    level: Level
    level_reason: str
    params: dict[str, Any]
    placements: tuple[Placement, ...] = ()
    body: OperationBody | None = None
    tags: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """The hash of the operation, without its tags and the reason for its level."""
        return fingerprint({**self.to_json(), "level_reason": "", "tags": []})

    def to_json(self) -> dict[str, Any]:
        """Return the operation as plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Restore an operation from `to_json`."""
        return cls(
            **{
                **stored,
                "level": Level(stored["level"]),
                "placements": tuple(Placement(**each) for each in stored["placements"]),
                "body": OperationBody(**stored["body"]) if stored["body"] else None,
                "tags": tuple(stored["tags"]),
            }
        )


@dataclass(frozen=True)
class SkippedOperation:
    """An operation that cannot become a tool, with the reason."""

    where: str
    reason: str


@dataclass(frozen=True)
class SecurityScheme:
    """A security scheme of a description.

    Attributes:
        kind: api_key, bearer, basic, oauth2 (client credentials), or another that Gadget does not
            support.
        place, parameter: for an API key: header, query or cookie, and its name there.
        token_url, scopes: for OAuth 2.
    """

    name: str
    kind: str
    place: str = ""
    parameter: str = ""
    token_url: str = ""
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ApiDescription:
    """The description of an API.

    Attributes:
        servers: base addresses as written in the description; scheme and host may be missing.
    """

    title: str
    version: str
    servers: tuple[str, ...]
    operations: tuple[ApiOperation, ...]
    skipped: tuple[SkippedOperation, ...]
    schemes: tuple[SecurityScheme, ...] = ()
