"""Many clients that connect simultaneously while the web process is busy."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from tests.gadget_site.edge.site import Site

pytestmark = pytest.mark.once

CLIENTS = 100


def test_all_clients_that_connect_to_a_paused_web_process_are_served_when_it_continues(
    site: Site,
) -> None:
    web = site.installation.process("web")
    with ExitStack() as stack:
        web.pause()
        stack.callback(web.resume)
        wires = [stack.enter_context(site.connect()) for _ in range(CLIENTS)]
        web.resume()
        assert {wire.ask("GET", "/api/health").status for wire in wires} == {200}
