"""Addresses that do not open a page are found where an address is expected; ordinary colons are
ignored."""

from __future__ import annotations

import pytest

from tools.contract.program_addresses import find_programs


@pytest.mark.parametrize(
    ("name", "text", "scheme"),
    [
        ("url", "javascript:fetch('x')", "javascript"),
        ("url", "java\tscript:alert(1)", "javascript"),
        ("url", " \x01JavaScript:alert(1)", "javascript"),
        ("link", "intent:#Intent;end", "intent"),
        ("callback_url", "ms-settings:network", "ms-settings"),
        ("url", "data:text/html;base64,PHNj", "data"),
        ("icon_url", "data:image/svg+xml,<svg>", "data"),
        ("notes", "see data:text/html,<b>x</b>", "data"),
        ("notes", "java\nscript:alert(1)", "javascript"),
        ("notes", "x vbscript:msgbox(1)", "vbscript"),
        ("notes", "javascript%3Aalert(1)", "javascript"),
        ("link", "intent:a:b:c", "intent"),
        ("notes", "[open](javascript:alert(1))", "javascript"),
        ("notes", "![x](<shell:startup>)", "shell"),
        ("notes", "[open][1]\n\n[1]: steam:install", "steam"),
        ("notes", '<a class="b" href="javascript&#58;alert(1)">x</a>', "javascript"),
        ("notes", "<form action=jar:x>", "jar"),
    ],
)
def test_an_address_that_does_not_open_a_page_is_explained(
    name: str, text: str, scheme: str
) -> None:
    assert list(find_programs(name, text)) == [f"{scheme}: opens no web page"]


def test_an_address_with_spaces_is_explained_only_where_an_address_is_expected() -> None:
    text = "https://acme.com x@evil.net/"
    assert list(find_programs("url", text)) == [
        "“https://acme.com x@evil.net” leads to different hosts in different programs"
    ]
    assert not list(find_programs("notes", text))
    assert not list(find_programs("url", "https://acme.com/ ann@acme.org"))


@pytest.mark.parametrize(
    ("name", "text", "host"),
    [
        ("ip", "010.10.10.10", "8.10.10.10"),
        ("ip_address", "127.1", "127.0.0.1"),
        ("host", "0x7f.1", "127.0.0.1"),
        ("server", "0177.0.0.1", "127.0.0.1"),
        ("host", "2130706433", "127.0.0.1"),
    ],
)
def test_a_host_in_disguised_numbers_is_explained(name: str, text: str, host: str) -> None:
    assert list(find_programs(name, text)) == [f"“{text}” leads to “{host}”"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("url", "https://acme.com/a:b"),
        ("url", "https:acme.com"),
        ("url", "acme.com:443/x"),
        ("url", "localhost:8080"),
        ("url", "see: below"),
        ("url", "mailto:bob@acme.com"),
        ("url", "C:\\reports"),
        ("uri", "arn:aws:s3:::acme"),
        ("endpoint", "users:list"),
        ("ip", "10.0.0.1"),
        ("server", "12.1"),
        ("ip_version", "4.1"),
        ("host_id", "12345678"),
        ("uri", "did:example:123456"),
        ("redirect", "urn:ietf:wg:oauth:2.0:oob"),
        ("host", "backup:/srv/x"),
        ("server", "fe80::1"),
        ("avatar_url", "data:image/png;base64,iVBORw0K"),
        ("notes", "status:active, cost:sum(a), color:rgb(1,2,3)"),
        ("notes", "data: 1, 2; data:a,b"),
        ("notes", "script:\n  - npm test (all)"),
        ("notes", "[a](./docs/a.md) [b](#top) [c](mailto:bob@acme.com) [d](tel:+37255551234)"),
        ("notes", "[INFO]: user signed in\n[WARN]: disk full"),
        ("notes", "<xsl:template> a<b:c <b style='color:red'>"),
        ("notes", "12:30, 3:1, nginx:latest, key:value"),
    ],
)
def test_an_ordinary_colon_does_not_need_an_explanation(name: str, text: str) -> None:
    assert list(find_programs(name, text)) == []
