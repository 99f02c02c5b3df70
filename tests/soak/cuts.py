"""The soak of cuts: runs on five hosts whose links are cut. `python -m tests.soak.hosts` creates
the hosts and starts this module."""

from __future__ import annotations

import argparse
import random
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass

import django
import redis

django.setup()

from django.db import connection  # noqa: E402
from django.test.utils import setup_databases  # noqa: E402

from gadget_site.management.processes import ProcessSpec  # noqa: E402
from tests.faults.site import Site  # noqa: E402
from tests.model_server import ModelServer  # noqa: E402
from tests.probes import RECORDER_VARIABLE  # noqa: E402
from tests.processes import Installation, RealProcess  # noqa: E402
from tests.recorder import Recorder  # noqa: E402
from tests.soak.network import DATABASE, HOSTS, OUTSIDE, REDIS, WEB, WORKERS, Network  # noqa: E402
from tests.soak.soaking import Plan, report, soak  # noqa: E402
from tests.soak.trouble import list_alarms  # noqa: E402
from tests.soak.world import SlowRecorder  # noqa: E402
from tests.workshop import build_workshop  # noqa: E402

POSTGRESQL_PORT, REDIS_PORT, WEB_PORT = 5432, 6379, 8000
CUT_S, PEACE_S = (1.0, 15.0), (1.0, 5.0)
READINESS_S = 3.0
"""The time within which the readiness check must respond: two seconds, and one more because all
parts share this machine."""
READY_AGAIN_S = 20.0
CHECK_EVERY_S = 1.0
DEAD_CONNECTIONS_S = 30.0
"""The time after which PostgreSQL must have ended a dead connection: 20 s of silence, and ten more
seconds of tolerance."""
_HOST_OF = {"web": WEB, "sweeper": WEB, "worker1": WORKERS[0], "worker2": WORKERS[1]}


@dataclass
class Hosts(Installation):
    """An installation whose parts run on separate hosts and are connected only by TCP."""

    network: Network | None = None

    def spawn(self, part: ProcessSpec) -> RealProcess:
        """Start the part on its host."""
        assert self.network is not None
        with self.network.inside(_HOST_OF[part.name]):
            return super().spawn(part)


def main() -> int:
    """Run the soak; return 0 if every promise held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", required=True)
    parser.add_argument("--cuts", type=int, required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    print(f"hosts: {options.cuts} cuts, seed {options.seed}", flush=True)
    plan = Plan(options.cuts, options.minutes * 60, random.Random(options.seed))
    return _soak_hosts(Network(options.network), plan)


def _soak_hosts(network: Network, plan: Plan) -> int:
    setup_databases(verbosity=0, interactive=False)  # removed together with its server
    try:
        with network.inside(OUTSIDE):
            outside = SlowRecorder(plan.chance, network.address(OUTSIDE))
        with outside as recorder, ModelServer() as model:
            with network.inside(REDIS):  # its Redis has to run on that host
                installation = Hosts(variables=_variables(network, recorder), network=network)
            with installation:
                _listen_to_hosts(installation)
                installation.start_all(workers=len(WORKERS))
                site = Site(installation, build_workshop(), recorder, model)
                return report(*soak(site, Cuts(network, installation, plan.chance), plan))
    finally:
        connection.close()


def _variables(network: Network, recorder: Recorder) -> dict[str, str]:
    server, database = network.address(DATABASE), connection.settings_dict["NAME"]
    return {
        RECORDER_VARIABLE: recorder.url,
        "DATABASE_URL": f"postgresql://postgres@{server}:{POSTGRESQL_PORT}/{database}",
        "REDIS_URL": f"redis://{network.address(REDIS)}:{REDIS_PORT}/0",
        "HOST": network.address(WEB),
        "PORT": str(WEB_PORT),
        "ALLOWED_HOSTS": network.address(WEB),
        "ALLOWED_PRIVATE_HOSTS": f"127.0.0.0/8, {network.subnet}",
    }


def _listen_to_hosts(installation: Installation) -> None:
    """Let the embedded Redis listen on TCP: by default it only listens on a socket file."""
    with redis.Redis.from_url(installation.redis.url) as client:
        client.config_set("protected-mode", "no")
        client.config_set("bind", "0.0.0.0")
        client.config_set("port", str(REDIS_PORT))


class Cuts:
    """Silently cuts off one host at a time, and checks the readiness of the web part meanwhile."""

    unit = "cuts"

    def __init__(self, network: Network, installation: Installation, chance: random.Random) -> None:
        self.done: Counter[str] = Counter()
        self._network, self._installation, self._chance = network, installation, chance
        self._found: list[str] = []
        self._change_at = self._check_at = time.monotonic()
        self._mended_at: float | None = None
        self._longest_s = 0.0

    @property
    def alarms(self) -> list[str]:
        """Broken promises, and every failure of the engine that a part has logged."""
        return self._found + [
            alarm for each in self._installation.processes for alarm in list_alarms(each)
        ]

    def replace_the_dead(self) -> None:
        """Report processes that have ended, because a cut must never end a process, and forget
        them."""
        for process in self._installation.processes:
            if not process.is_alive:
                self._found.append(
                    f"{process.name} ended with {process.exit_code}: {process.output[-500:]}"
                )
        self._installation.processes[:] = [
            each for each in self._installation.processes if each.is_alive
        ]

    def ready_workers(self) -> list[RealProcess]:
        """Return the workers that reach PostgreSQL and Redis."""
        away = self._network.cut_hosts
        workers = [each for each in self._installation.processes if each.name.startswith("worker")]
        return (
            []
            if away & {DATABASE, REDIS}
            else [each for each in workers if _HOST_OF[each.name] not in away]
        )

    def act(self) -> None:
        now = time.monotonic()
        is_at_peace = not self._network.cut_hosts and self._mended_at is None
        if now >= self._change_at and (self._network.cut_hosts or is_at_peace):
            self._mend_all() if self._network.cut_hosts else self._cut()
        if now >= self._check_at:
            self._check_at = now + CHECK_EVERY_S
            self._check_readiness()

    def calm_down(self) -> None:
        self._mend_all()
        while self._mended_at is not None:
            self._check_readiness()
            time.sleep(0.1)
        deadline = time.monotonic() + DEAD_CONNECTIONS_S
        while dead := self._list_dead_connections():
            if time.monotonic() > deadline:
                self._found.append(
                    f"PostgreSQL still holds {len(dead)} connections that no client has: {dead}"
                )
                break
            time.sleep(0.5)
        self.done["connections to PostgreSQL at the end"] = len(self._list_connections())

    def _list_connections(self) -> list[tuple[str, int]]:
        """List the clients of PostgreSQL's sessions, as the server knows them."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT host(client_addr), client_port FROM pg_stat_activity WHERE client_addr IS NOT NULL"
            )
            return [(address, port) for address, port in cursor.fetchall()]

    def _list_dead_connections(self) -> list[tuple[str, int]]:
        """List the sessions of clients that no longer exist on their host."""
        listed, clients = self._list_connections(), [WEB, *WORKERS]
        alive = set[tuple[str, int]]().union(*map(self._network.list_sockets, clients))
        addresses = set(map(self._network.address, clients))
        return [each for each in listed if each[0] in addresses and each not in alive]

    def _cut(self) -> None:
        host = self._chance.choice(HOSTS)
        self._network.cut(host)
        self.done.update(("cuts", f"cuts of {host}"))
        self._mended_at = None
        self._change_at = time.monotonic() + self._chance.uniform(*CUT_S)

    def _mend_all(self) -> None:
        for host in list(self._network.cut_hosts):
            self._network.mend(host)
        self._mended_at = time.monotonic()
        self._change_at = time.monotonic() + self._chance.uniform(*PEACE_S)

    def _check_readiness(self) -> None:
        if WEB in self._network.cut_hosts:
            return
        began = time.monotonic()
        status = self._fetch_readiness()
        if (took := time.monotonic() - began) > READINESS_S:
            self._found.append(
                f"readiness took {took:.1f} s ({status}), cut off: {self._network.cut_hosts}"
            )
        if self._mended_at is None:
            return
        if status == 200:
            self._longest_s = max(self._longest_s, time.monotonic() - self._mended_at)
            self.done["longest until ready again (ms)"] = round(self._longest_s * 1_000)
            self._mended_at = None
        elif began - self._mended_at > READY_AGAIN_S:
            self._found.append(
                f"not ready {began - self._mended_at:.0f} s after the link was back: {status}"
            )
            self._mended_at = None

    def _fetch_readiness(self) -> int:
        """Return the status of the readiness check; 0 if there is no response."""
        url = f"http://{self._network.address(WEB)}:{WEB_PORT}/api/ready"
        try:
            with urllib.request.urlopen(url, timeout=2 * READINESS_S) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0


if __name__ == "__main__":
    sys.exit(main())
