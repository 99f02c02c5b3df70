"""Tools from a description of an HTTP API: OpenAPI 3.1, 3.0 and Swagger 2.0."""

from .authentication import Authentication, Kind, Tokens
from .document import DocumentError, Limits
from .operations import Body, Description, LeftOut, Operation, Placement, SecurityScheme
from .reading import read_description
from .tool import Connection, OpenAPITool

__all__ = [
    "Authentication",
    "Body",
    "Connection",
    "Description",
    "DocumentError",
    "Kind",
    "LeftOut",
    "Limits",
    "OpenAPITool",
    "Operation",
    "Placement",
    "SecurityScheme",
    "Tokens",
    "read_description",
]
