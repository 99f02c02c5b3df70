"""The guarded transport and HTTP client, the only code in `tools` that opens connections."""

from tools.network.async_transport import GuardedAsyncTransport
from tools.network.certificates import ServerCertificate, fetch_certificate
from tools.network.http_client import (
    ClientResponse,
    GuardedClient,
    NetworkLimits,
    request,
    request_async,
)
from tools.network.name_resolution import Resolver, look_up_host
from tools.network.urls import get_host, parse_host, read_url

__all__ = [
    "ClientResponse",
    "GuardedAsyncTransport",
    "GuardedClient",
    "NetworkLimits",
    "Resolver",
    "ServerCertificate",
    "fetch_certificate",
    "get_host",
    "look_up_host",
    "parse_host",
    "read_url",
    "request",
    "request_async",
]
