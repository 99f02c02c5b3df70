"""From a host's name to the addresses that may be connected to."""

import queue
import socket
import threading
import time
from collections.abc import Callable, Sequence
from ipaddress import ip_address

from tools.contract import HostPort, Reach

from .addresses import Address, fault_of
from .failures import refused, too_slow, unreachable
from .urls import literal

Resolve = Callable[[str, float], Sequence[str]]
"""`resolve(host, seconds)`: every address of the name, as text, none if there is no such name.

Raises:
    TimeoutError: no answer in that time.
    OSError: whoever was asked cannot say.
"""

MOST_LOOKUPS = 64
_lookups = threading.BoundedSemaphore(MOST_LOOKUPS)


def system_resolve(host: str, seconds: float) -> Sequence[str]:
    """Asks the system, as every program does: hosts file, DNS, in the order that the machine is set to.

    The system's call cannot be interrupted, so it is made in a thread of its own, which is left behind when the time is
    over; at most MOST_LOOKUPS of them at once.
    """
    started = time.monotonic()
    if not _lookups.acquire(timeout=seconds):
        raise TimeoutError
    answers: queue.SimpleQueue[Sequence[str] | OSError] = queue.SimpleQueue()
    threading.Thread(target=_look_up, args=(host, answers), name="lookup", daemon=True).start()
    try:
        answer = answers.get(timeout=max(0.0, seconds - (time.monotonic() - started)))
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(answer, OSError):
        raise answer
    return answer


def _look_up(host: str, answers: "queue.SimpleQueue[Sequence[str] | OSError]") -> None:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        answers.put(list(dict.fromkeys(str(entry[4][0]) for entry in found)))
    except UnicodeError:
        answers.put([])
    except socket.gaierror as error:
        none = error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
        answers.put([] if none else error)
    except OSError as error:
        answers.put(error)
    finally:
        _lookups.release()


def addresses_of(server: HostPort, reach: Reach, resolve: Resolve, seconds: float) -> list[Address]:
    """Return at least one address of the server, all checked; the connection uses these without another lookup.

    Raises:
        ToolError: SECURITY_VIOLATION, NETWORK_ERROR or TIMEOUT; nothing was sent.
    """
    found = checked_addresses(server, reach, resolve, seconds)
    if not found:
        raise unreachable(f"There is no host {server.host!r}.")
    return found


def checked_addresses(server: HostPort, reach: Reach, resolve: Resolve, seconds: float) -> list[Address]:
    """Return the addresses of the server, all checked; none if there is no such host.

    One address that is not allowed refuses the host as a whole: a name that is public and private at once belongs to
    nobody's service. It is a trick, or a network whose inside is not for us.

    Raises:
        ToolError: SECURITY_VIOLATION, NETWORK_ERROR or TIMEOUT; nothing was sent.
    """
    host = server.host
    found = _found(host, resolve, seconds)
    fault = next(filter(None, (fault_of(address, server, reach) for address in found)), "")
    if fault:
        raise refused(
            f"{host} may not be reached: it is, or leads to, {fault}.",
            "Use the address of a public host. The owner of this installation can allow private addresses.",
        )
    return found


def _found(host: str, resolve: Resolve, seconds: float) -> list[Address]:
    address = literal(host)
    if address is not None:
        return [address]
    try:
        return [ip_address(text) for text in resolve(host, seconds)]
    except TimeoutError:
        raise too_slow(f"The name service for {host}", seconds) from None
    except (OSError, ValueError) as error:
        raise unreachable(f"The address of {host!r} could not be found out.") from error
