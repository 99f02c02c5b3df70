"""Describe failed connections to model servers in sentences that name the next step."""

import errno
import re
import ssl

import httpcore2
import httpx2

from tools.network.urls import get_host

_NO_ROUTE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN})


def describe_connect_error(url: httpx2.URL, error: Exception) -> str:
    """Describe an error that occurred while connecting, and the next step. The text has one or two
    sentences; the last period is left out."""
    address, place = f"{url.scheme}://{url.netloc.decode('ascii')}", url.netloc.decode("ascii")
    cause = error.args[0] if error.args else None
    if isinstance(error, httpcore2.ProxyError):
        return f"The proxy refuses the connection to {place}: {error}. Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY"
    if isinstance(error, httpcore2.TimeoutException):
        advice = "Check that the server runs and that no firewall blocks it"
        # A server without TLS may take the handshake for an unfinished request and wait for the
        # rest.
        if url.scheme == "https":
            advice += f". If it doesn't speak https, use http://{place}"
        return f"{place} does not respond. {advice}"
    if isinstance(cause, ssl.SSLError) or "SSL" in str(error):
        return _describe_tls_error(get_host(url), place, cause)
    if isinstance(cause, ConnectionRefusedError) or "refused" in str(error):
        return (
            f"Nothing responds at {address}. Start the server, or correct the address and its port"
        )
    if isinstance(cause, OSError) and cause.errno in _NO_ROUTE:
        return f"This machine has no route to {place}. Check the network and the address"
    return f"Could not reach {address}: {error}. Check the address, and that the server is running"


def _describe_tls_error(host: str, place: str, cause: object) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        fault = cause.verify_message.rstrip(".")
        return f"The certificate of {host} is not valid: {fault}. Renew it, or let this machine trust its issuer"
    return f"The server at {place} doesn't speak https. Try http://{place}"


def describe_early_end(url: httpx2.URL, error: Exception) -> str:
    """Describe a connection that ended before a response began, or that was not HTTP, and the next
    step. The last period is left out."""
    address = f"{url.scheme}://{url.netloc.decode('ascii')}"
    advice = "Check that the address belongs to a model's server"
    if url.scheme == "http":
        advice += ", and try https://"
    words = re.sub(r"\[Errno -?\d+\] ", "", str(error))
    reason = f": {words}" if words else ""
    return f"{address} closed the connection without a response{reason}. {advice}"
