"""Tools built from the description of an HTTP API: OpenAPI 3.0 to 3.2, or Swagger 2.0."""

from tools.sources.openapi.authentication import (
    AuthenticationKind,
    AuthenticationSettings,
    TokenCache,
)
from tools.sources.openapi.description_reader import read_description
from tools.sources.openapi.document import DocumentError, DocumentLimits
from tools.sources.openapi.operations import (
    ApiDescription,
    ApiOperation,
    OperationBody,
    Placement,
    SecurityScheme,
    SkippedOperation,
)
from tools.sources.openapi.source import OpenAPISource
from tools.sources.openapi.tool import ApiConnection, OpenAPITool

__all__ = [
    "ApiConnection",
    "ApiDescription",
    "ApiOperation",
    "AuthenticationKind",
    "AuthenticationSettings",
    "DocumentError",
    "DocumentLimits",
    "OpenAPISource",
    "OpenAPITool",
    "OperationBody",
    "Placement",
    "SecurityScheme",
    "SkippedOperation",
    "TokenCache",
    "read_description",
]
