"""Resolution of host names to addresses that tools may connect to."""

import queue
import socket
import threading
import time
from collections.abc import Callable, Sequence
from ipaddress import ip_address

from tools.contract import HostPort, NetworkAccess
from tools.network.addresses import Address, find_forbidden_kind
from tools.network.errors import network_error, security_violation, timeout_error
from tools.network.urls import parse_ip

Resolver = Callable[[str, float], Sequence[str]]
"""`resolve(host, seconds)` returns the addresses of the host as text; none if the host does not
exist.

Raises:
    TimeoutError: no response came within `seconds`.
    OSError: the name service failed.
"""

MAX_LOOKUPS = 64
_lookups = threading.BoundedSemaphore(MAX_LOOKUPS)


def resolve_with_system(host: str, seconds: float) -> Sequence[str]:
    """Resolve the host with the system's resolver: hosts file and DNS, in the configured order.

    The system call cannot be interrupted, so it runs in a thread of its own, which is abandoned at
    the timeout; at most MAX_LOOKUPS of these threads run at once.
    """
    started = time.monotonic()
    if not _lookups.acquire(timeout=seconds):
        raise TimeoutError
    outcomes: queue.SimpleQueue[Sequence[str] | OSError] = queue.SimpleQueue()
    threading.Thread(target=_look_up, args=(host, outcomes), name="lookup", daemon=True).start()
    try:
        outcome = outcomes.get(timeout=max(0.0, seconds - (time.monotonic() - started)))
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(outcome, OSError):
        raise outcome
    return outcome


def _look_up(host: str, outcomes: "queue.SimpleQueue[Sequence[str] | OSError]") -> None:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        outcomes.put(list(dict.fromkeys(str(entry[4][0]) for entry in found)))
    except UnicodeError:
        outcomes.put([])
    except socket.gaierror as error:
        is_unknown = error.errno in (
            socket.EAI_NONAME,
            getattr(socket, "EAI_NODATA", socket.EAI_NONAME),
        )
        outcomes.put([] if is_unknown else error)
    except OSError as error:
        outcomes.put(error)
    finally:
        _lookups.release()


def resolve_host(
    server: HostPort, reach: NetworkAccess, resolve: Resolver, seconds: float
) -> list[Address]:
    """Return the server's addresses, at least one, after checking all of them. The caller must
    connect to one of them without looking up the name again.

    Raises:
        ToolError: SECURITY_VIOLATION, NETWORK_ERROR or TIMEOUT; nothing was sent.
    """
    found = look_up_host(server, reach, resolve, seconds)
    if not found:
        raise network_error(f"The host {server.host!r} does not exist.")
    return found


def look_up_host(
    server: HostPort, reach: NetworkAccess, resolve: Resolver, seconds: float
) -> list[Address]:
    """Return the addresses of the server after checking all of them; empty if the host does not
    exist.

    If one of its addresses is forbidden, so is the host: an honest service does not have public and
    private addresses under one name.

    Raises:
        ToolError: SECURITY_VIOLATION, NETWORK_ERROR or TIMEOUT; nothing was sent.
    """
    host = server.host
    found = _resolve_unchecked(host, resolve, seconds)
    for address in found:
        if (kind := find_forbidden_kind(address, server, reach)) is not None:
            raise security_violation(
                f"{host} is not allowed: it has {kind.value}.",
                "Use the address of a public host. The owner of this installation can allow private addresses.",
            )
    return found


def _resolve_unchecked(host: str, resolve: Resolver, seconds: float) -> list[Address]:
    address = parse_ip(host)
    if address is not None:
        return [address]
    try:
        return [ip_address(text) for text in resolve(host, seconds)]
    except TimeoutError:
        raise timeout_error(f"The name service for {host}", seconds) from None
    except (OSError, ValueError) as error:
        raise network_error(f"The address of {host!r} could not be resolved.") from error
