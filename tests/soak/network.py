"""Five hosts on one machine: network namespaces, each with a link that can be cut silently."""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CLONE_NEWNET = 0x40000000
SUBNET = "10.213.77"
DATABASE, REDIS, WEB, WORKERS = "database", "redis", "web", ("one", "two")
"""The hosts of PostgreSQL, of Redis, and of the web part and sweeper, and the two hosts of the
workers."""
HOSTS = (DATABASE, REDIS, WEB, *WORKERS)
OUTSIDE = "outside"
"""The host that records effects outside Gadget; it is never cut off. It needs its own namespace,
because a firewall may keep the hosts from reaching the machine itself."""
_NAMESPACES = (*HOSTS, OUTSIDE)
_libc = ctypes.CDLL(None, use_errno=True)


class NoNamespacesError(Exception):
    """This machine cannot create network namespaces; the message says why."""


class Network:
    """A bridge with a namespace for each host, including OUTSIDE. Used as a context manager, it
    creates them and removes them afterwards.

    Args:
        name: the name of a network that another process has created; if empty, a new name is
            chosen.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name or f"g{secrets.token_hex(2)}"
        self.cut_hosts: set[str] = set()
        self._bridge = f"{self.name}br"

    @property
    def subnet(self) -> str:
        return f"{SUBNET}.0/24"

    def address(self, host: str) -> str:
        """Return the address of a host."""
        return f"{SUBNET}.{2 + _NAMESPACES.index(host)}"

    def __enter__(self) -> Network:
        if os.name != "posix" or os.geteuid() or shutil.which("ip") is None:
            raise NoNamespacesError("Network namespaces need root and the command `ip`.")
        try:
            self._create()
        except subprocess.CalledProcessError as error:
            self._remove()
            raise NoNamespacesError(f"{' '.join(error.cmd)}: {error.stderr.strip()}") from error
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    @contextmanager
    def inside(self, host: str) -> Iterator[None]:
        """Run the block inside the host: processes and sockets of this thread then belong to the
        host."""
        with (
            Path("/proc/thread-self/ns/net").open() as ours,
            Path("/run/netns", self._namespace(host)).open() as its,
        ):
            _enter(its.fileno())
            try:
                yield
            finally:
                _enter(ours.fileno())

    def list_sockets(self, host: str) -> set[tuple[str, int]]:
        """List the address and port of the host's own end of each of its TCP connections."""
        listed = _ip("netns", "exec", self._namespace(host), "ss", "-tnH", "state", "established")
        ends = (line.split()[2].rpartition(":") for line in listed.splitlines())
        return {(address, int(port)) for address, _, port in ends}

    def cut(self, host: str) -> None:
        """Drop all packets to and from the host silently, from now on."""
        _ip("link", "set", self._port(host), "nomaster")
        self.cut_hosts.add(host)

    def mend(self, host: str) -> None:
        """Undo `cut`."""
        _ip("link", "set", self._port(host), "master", self._bridge)
        self.cut_hosts.discard(host)

    def _create(self) -> None:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("address", "add", f"{SUBNET}.1/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for host in _NAMESPACES:
            namespace, port = self._namespace(host), self._port(host)
            _ip("netns", "add", namespace)
            _ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", namespace)
            _ip("link", "set", port, "master", self._bridge, "up")
            _ip("-n", namespace, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", namespace, "link", "set", device, "up")

    def _remove(self) -> None:
        for host in _NAMESPACES:
            for command in (
                ("link", "del", self._port(host)),
                ("netns", "del", self._namespace(host)),
            ):
                with suppress(subprocess.CalledProcessError):
                    _ip(*command)
        with suppress(subprocess.CalledProcessError):
            _ip("link", "del", self._bridge)

    def _namespace(self, host: str) -> str:
        return f"{self.name}-{host}"

    def _port(self, host: str) -> str:
        return f"{self.name}p{_NAMESPACES.index(host)}"


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns failed")
