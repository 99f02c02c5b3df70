"""A model server with a private address is contacted only if the installation allows it; each
connection is checked."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from agents.providers.base import ProviderError
from gadget_site.private_hosts import parse_private_hosts
from tests.features import feature
from tests.model_server import ModelServer
from tests.ollama_server import OllamaServer
from tests.providers.conftest import Asking
from tools.contract import PrivateHosts

NOTHING = PrivateHosts()


def refusal_of(ask: Asking) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        ask()
    assert not caught.value.transient
    return caught.value


@feature(
    "Network access",
    "Model providers pass the same checks when they are saved and at each connection",
    "tools/network/transport.py, agents/providers/transport.py",
    whole_file=True,
)
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "LOCALHOST.", "127.1", "2130706433", "0x7f000001"]
)
def test_a_server_on_this_machine_is_refused_unless_allowed(
    server: ModelServer, ask: Asking, host: str
) -> None:
    ask.private_hosts = NOTHING
    ask.base_url = server.url.replace("127.0.0.1", host)
    error = refusal_of(ask)
    assert error.code == "bad_settings"
    assert "a private address" in error.message
    assert "ALLOWED_PRIVATE_HOSTS" in error.message
    assert server.connections == 0


def test_an_ollama_server_on_this_machine_is_refused_unless_allowed(
    ollama: OllamaServer, ask_ollama: Asking
) -> None:
    ask_ollama.private_hosts = NOTHING
    assert refusal_of(ask_ollama).code == "bad_settings"
    with pytest.raises(ProviderError, match="a private address"):
        ask_ollama.provider().check()
    assert ollama.connections == 0


@pytest.mark.parametrize(
    "host",
    ["10.0.0.5", "192.168.1.2", "[fd00::1]", "169.254.169.254", "[::ffff:10.0.0.1]", "0.0.0.0"],
)
def test_any_other_address_that_is_not_public_is_refused(ask: Asking, host: str) -> None:
    ask.private_hosts = NOTHING
    ask.base_url = f"http://{host}:9/v1"
    assert refusal_of(ask).code == "bad_settings"


def test_metadata_services_stay_forbidden_whatever_is_allowed(ask: Asking) -> None:
    ask.private_hosts = parse_private_hosts("169.254.0.0/16,0.0.0.0/0")
    ask.base_url = "http://169.254.169.254/v1"
    assert refusal_of(ask).code == "bad_settings"


def test_an_allowed_private_address_can_be_limited_to_one_port(
    server: ModelServer, ask: Asking
) -> None:
    port = int(server.url.split(":")[2].split("/")[0])
    for entry in (f"127.0.0.1:{port + 1}", f"localhost:{port}", "10.0.0.0/8"):
        ask.private_hosts = parse_private_hosts(entry)
        assert refusal_of(ask).code == "bad_settings"
    assert server.connections == 0
    for entry in (f"127.0.0.1:{port}", "127.0.0.0/8", f"127.0.0.0/8:{port}"):
        ask.private_hosts = parse_private_hosts(entry)
        assert ask().text == "Done."


def test_a_name_is_resolved_once_and_the_checked_address_is_used(
    server: ModelServer, ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses, system = [["127.0.0.1"], ["10.9.9.9"]], socket.getaddrinfo

    def look_up(host: str, *args: Any, **more: Any) -> Any:
        if host != "moving.test":
            return system(host, *args, **more)
        return [entry for address in responses.pop(0) for entry in system(address, *args, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    ask.private_hosts = parse_private_hosts("127.0.0.1")
    ask.base_url = server.url.replace("127.0.0.1", "moving.test")
    assert ask().text == "Done."
    assert responses == [["10.9.9.9"]]
    # With another setting, the open connection is not reused.
    ask.private_hosts = parse_private_hosts("127.0.0.0/8")
    assert refusal_of(ask).code == "bad_settings"
    assert server.connections == 1


def test_a_name_with_one_private_address_among_several_is_refused(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(host: str, *args: Any, **more: Any) -> Any:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0)) for one in ("8.8.8.8", "10.0.0.1")
        ]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    ask.private_hosts = NOTHING
    ask.base_url = "http://mixed.test/v1"
    assert refusal_of(ask).code == "bad_settings"


class TestAClientBehindAProxy:
    """The proxy belongs to the installation; the requested address is checked before it is used."""

    def test_does_not_reach_a_private_server(
        self, server: ModelServer, ask: Asking, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
        ask.private_hosts = NOTHING
        for address in ("http://10.7.7.7/v1", "http://localhost.:1/v1"):
            ask.base_url = address
            assert refusal_of(ask).code == "bad_settings"
        assert server.connections == 0

    def test_leaves_the_resolution_of_an_unknown_name_to_the_proxy(
        self, server: ModelServer, ask: Asking, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
        ask.private_hosts = NOTHING
        ask.base_url = "http://model.invalid/v1"
        with pytest.raises(ProviderError, match="no such path"):  # the fake server is not a proxy
            ask()
        assert server.connections == 1
