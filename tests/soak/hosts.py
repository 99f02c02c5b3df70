"""Creates a network of five hosts, starts PostgreSQL on one of them, and runs `tests.soak.cuts`
there."""

from __future__ import annotations

import os
import subprocess
import sys

from tests import services
from tests.soak.network import DATABASE, Network, NoNamespacesError


def main(arguments: list[str]) -> int:
    """Run the soak; return 0 if every promise held, or if this machine cannot create hosts (a
    message says so)."""
    try:
        with Network() as network:
            return _soak(network, arguments)
    except NoNamespacesError as error:
        print(f"hosts: skipped. {error}", flush=True)
        return 0


def _soak(network: Network, arguments: list[str]) -> int:
    with network.inside(DATABASE):
        server = services.start_postgresql(
            {"listen_addresses": "*"}, trusted_network=network.subnet
        )
    environment = {**os.environ, services.POSTGRESQL_VARIABLE: server.url}
    command = [sys.executable, "-m", "tests.soak.cuts", f"--network={network.name}", *arguments]
    try:
        return subprocess.run(command, env=environment, check=False).returncode
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
