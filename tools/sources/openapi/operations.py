"""One operation of an outside API as a tool needs it: plain data that is kept in the database and read again."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from tools.contract import Level, fingerprint

from .schemas import Names


@dataclass(frozen=True)
class Placement:
    """Where one param goes in a request.

    Attributes:
        shown: the param's name for the model.
        name: the API's own name.
        place: path, query, header or cookie.
        style: simple, form, spaceDelimited, pipeDelimited, tabDelimited or deepObject.
        explode: whether each entry is written by itself.
        as_json: whether the value is written as JSON.
        names: the API's own names inside the value.
        refused: in lower case, names that an object may not bring where it is spread: API keys, and what the operation
            fixes.
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
        """Query or cookie, if each property of an object becomes a parameter of its own there; else empty."""
        is_spread = self.explode and self.style != "deepObject" and not self.as_json
        return self.place if is_spread and self.place in ("query", "cookie") else ""


@dataclass(frozen=True)
class Body:
    """What is sent.

    Attributes:
        media_type: JSON, a form or text.
        shown: the param that holds all of it; empty if each of its fields is a param.
        required: whether it is sent though no field is given.
        names: of its fields, all of them if `shown` is empty.
    """

    media_type: str
    shown: str = ""
    required: bool = False
    names: Names = field(default_factory=dict)


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        key: method and path, unique in the description: `GET /pets/{id}`.
        name: the part of the tool's name after the dot; unique in the description.
        description: for the model, at most 1,024 characters.
        level, level_reason: inferred, and why, for the admin.
        params: JSON schema without references; holds no credential.
        placements, body: where the params go.
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
    body: Body | None = None
    tags: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """Changes whenever the API describes it in another way; our reason for its level and its tags are no part."""
        return fingerprint({**self.as_json(), "level_reason": "", "tags": []})

    def as_json(self) -> dict[str, Any]:
        """Plain JSON, to be kept."""
        return asdict(self)

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """What `as_json` made."""
        return cls(
            **{
                **kept,
                "level": Level(kept["level"]),
                "placements": tuple(Placement(**each) for each in kept["placements"]),
                "body": Body(**kept["body"]) if kept["body"] else None,
                "tags": tuple(kept["tags"]),
            }
        )


@dataclass(frozen=True)
class LeftOut:
    """An operation that becomes no tool."""

    where: str
    reason: str


@dataclass(frozen=True)
class SecurityScheme:
    """How the description says that callers prove who they are.

    Attributes:
        kind: api_key, bearer, basic, oauth2 (client credentials), or another that Gadget does not speak.
        place, parameter: of an API key: header, query or cookie, and its name there.
        token_url, scopes: of OAuth2.
    """

    name: str
    kind: str
    place: str = ""
    parameter: str = ""
    token_url: str = ""
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Description:
    """A whole description.

    Attributes:
        servers: base addresses as the description gives them, which may lack scheme and host.
    """

    title: str
    version: str
    servers: tuple[str, ...]
    operations: tuple[Operation, ...]
    left_out: tuple[LeftOut, ...]
    schemes: tuple[SecurityScheme, ...] = ()
