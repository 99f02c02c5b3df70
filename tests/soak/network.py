"""Hosts on one machine: network namespaces with a link each, which can be cut without a word to either side."""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

CLONE_NEWNET = 0x40000000
SUBNET = "10.213.77"
_libc = ctypes.CDLL(None, use_errno=True)


class NoNamespacesError(Exception):
    """This machine cannot make network namespaces; the text says why."""


class Network:
    """A bridge of ours, and one namespace for each name, connected to it. Use it as a context manager."""

    def __init__(self, names: Sequence[str]) -> None:
        self.cut_hosts: set[str] = set()
        self._names = list(names)
        self._id = f"g{secrets.token_hex(2)}"
        self._bridge = f"{self._id}br"

    @property
    def gateway(self) -> str:
        """The address of this process's own side."""
        return f"{SUBNET}.1"

    @property
    def subnet(self) -> str:
        return f"{SUBNET}.0/24"

    def address(self, name: str) -> str:
        """The address of a host."""
        return f"{SUBNET}.{2 + self._names.index(name)}"

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
    def inside(self, name: str) -> Iterator[None]:
        """Whatever this thread starts or opens in the block belongs to the host."""
        with Path("/proc/thread-self/ns/net").open() as ours, Path("/run/netns", self._namespace(name)).open() as its:
            _enter(its.fileno())
            try:
                yield
            finally:
                _enter(ours.fileno())

    def cut(self, name: str) -> None:
        """From now on no packet reaches the host or leaves it, and nobody is told."""
        _ip("link", "set", self._port(name), "nomaster")
        self.cut_hosts.add(name)

    def mend(self, name: str) -> None:
        """Undo `cut`."""
        _ip("link", "set", self._port(name), "master", self._bridge)
        self.cut_hosts.discard(name)

    def _create(self) -> None:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("address", "add", f"{self.gateway}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for name in self._names:
            namespace, port = self._namespace(name), self._port(name)
            _ip("netns", "add", namespace)
            _ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", namespace)
            _ip("link", "set", port, "master", self._bridge, "up")
            _ip("-n", namespace, "address", "add", f"{self.address(name)}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", namespace, "link", "set", device, "up")

    def _remove(self) -> None:
        for name in self._names:
            for command in (("link", "del", self._port(name)), ("netns", "del", self._namespace(name))):
                with suppress(subprocess.CalledProcessError):
                    _ip(*command)
        with suppress(subprocess.CalledProcessError):
            _ip("link", "del", self._bridge)

    def _namespace(self, name: str) -> str:
        return f"{self._id}-{name}"

    def _port(self, name: str) -> str:
        return f"{self._id}p{self._names.index(name)}"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns failed")
