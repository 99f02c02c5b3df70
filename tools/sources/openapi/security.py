"""The security schemes of a description."""

from collections.abc import Iterable, Mapping
from typing import Any

from tools.sources.openapi.operations import SecurityScheme
from tools.sources.openapi.references import References, UnsupportedOperationError


def read_security_schemes(
    document: Mapping[str, Any], references: References
) -> tuple[SecurityScheme, ...]:
    """Read all security schemes, in the order in which the API's description lists them."""
    components = document.get("components")
    newer = components.get("securitySchemes") if isinstance(components, Mapping) else None
    given = document.get("securityDefinitions") if "swagger" in document else newer
    found = []
    for name, node in given.items() if isinstance(given, Mapping) else ():
        try:
            found.append(_read_scheme(str(name), references.resolve_object(node)))
        except UnsupportedOperationError:
            found.append(SecurityScheme(str(name), "unknown"))
    return tuple(found)


def list_api_keys(schemes: Iterable[SecurityScheme]) -> frozenset[tuple[str, str]]:
    """List the place and the name, in lower case, of every parameter that is an API key."""
    return frozenset(
        (scheme.place, scheme.parameter.lower()) for scheme in schemes if scheme.kind == "api_key"
    )


def _read_scheme(name: str, node: Mapping[str, Any]) -> SecurityScheme:
    kind, scheme = str(node.get("type", "")), str(node.get("scheme", "")).lower()
    if kind == "apiKey":
        return SecurityScheme(name, "api_key", str(node.get("in", "")), str(node.get("name", "")))
    if kind == "basic" or (kind == "http" and scheme == "basic"):
        return SecurityScheme(name, "basic")
    if kind == "http" and scheme == "bearer":
        return SecurityScheme(name, "bearer")
    if kind == "oauth2":
        return _read_oauth2(name, node)
    return SecurityScheme(name, kind[:40] or "unknown")


def _read_oauth2(name: str, node: Mapping[str, Any]) -> SecurityScheme:
    """Read an OAuth 2 scheme; a scheme without a client credentials flow is treated as a bearer
    token."""
    flows = node.get("flows")
    newer = flows.get("clientCredentials") if isinstance(flows, Mapping) else None
    flow = (
        newer if isinstance(newer, Mapping) else node if node.get("flow") == "application" else None
    )
    if flow is None:
        return SecurityScheme(name, "bearer")
    scopes = flow.get("scopes")
    named = tuple(map(str, scopes)) if isinstance(scopes, Mapping) else ()
    return SecurityScheme(name, "oauth2", token_url=str(flow.get("tokenUrl", "")), scopes=named)
