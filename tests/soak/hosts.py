"""The soak on four hosts: PostgreSQL with Redis; the web part with the sweeper; two workers. Their links are cut."""

from __future__ import annotations

import argparse
import os
import random
import sys

import django

from tests import services
from tests.soak.network import Network, NoNamespacesError

SERVICES, WEB, WORKERS = "services", "web", ("one", "two")


def main() -> int:
    """Return 0 if every promise held, or if this machine cannot make hosts, which is said."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    try:
        with Network((SERVICES, WEB, *WORKERS)) as network:
            return _soak(network, options)
    except NoNamespacesError as error:
        print(f"hosts: left out. {error}", flush=True)
        return 0


def _soak(network: Network, options: argparse.Namespace) -> int:
    with network.inside(SERVICES):
        server = services.start_postgresql({"listen_addresses": "*"}, trusted_network=network.subnet)
    os.environ[services.POSTGRESQL_VARIABLE] = server.url
    django.setup()  # not before: the settings name the server
    from tests.soak import cuts  # noqa: PLC0415
    from tests.soak.soaking import Plan  # noqa: PLC0415

    print(f"hosts: {options.cuts} cuts, seed {options.seed}", flush=True)
    try:
        return cuts.soak_hosts(network, Plan(options.cuts, options.minutes * 60, random.Random(options.seed)))
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(main())
