"""The one safe door to the network: nothing else in `tools` opens a connection."""

from .certificates import Certificate, certificate_of
from .clients import AsyncTransport
from .door import Answer, Door, NetworkLimits, request
from .resolving import Resolve, addresses_of, checked_addresses, system_resolve
from .urls import host_in, host_of, read_url

__all__ = [
    "Answer",
    "AsyncTransport",
    "Certificate",
    "Door",
    "NetworkLimits",
    "Resolve",
    "addresses_of",
    "certificate_of",
    "checked_addresses",
    "host_in",
    "host_of",
    "read_url",
    "request",
    "system_resolve",
]
