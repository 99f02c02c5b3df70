"""The log hides known secrets in every encoding, and no organization can crowd out the secrets of
others."""

from __future__ import annotations

import json
from urllib.parse import quote, urlencode

import pytest

from agents.platform.known_secrets import MAX_OF_ONE, MAX_OWNERS, KnownSecrets, name_common_kind

SECRET = 'pass\\word "ü"&<1>'
PEM = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----"


TOKEN = "tk-93f1b7c2aa-of-acme"
COMMON_VALUES = {
    "an address": (
        "127.0.0.1",
        "10.0.0.0/8",
        "[::1]:8000",
        "2001:db8::17",
        "http://127.0.0.1:8111/",
        "::ffff:10.2.3.4",
    ),
    "a host name": (
        "localhost",
        "api.example.com",
        "https://api.example.com",
        "Example.COM:443",
        "models.internal",
    ),
    "a number": (
        "12345678",
        "4111 1111 1111 1111",
        "+43 (1) 234-5678",
        "2026-11-29 10:00:00",
        "1.000.000,00",
    ),
    "a word": ("failed", "Password", "WARNING", "straße", "пароль"),
}


def hidden(text: str, *secrets: str) -> str:
    known = KnownSecrets()
    known.learn(secrets)
    return known.redact(text, "[hidden]")


@pytest.mark.parametrize(
    ("kind", "value"), [(kind, value) for kind, them in COMMON_VALUES.items() for value in them]
)
def test_a_common_value_is_hidden_only_in_lines_of_its_organization(kind: str, value: str) -> None:
    known = KnownSecrets()
    known.learn([value, TOKEN], owner=1)
    line = f"the database at {value} failed, {TOKEN}"
    assert name_common_kind(value) == kind
    assert known.redact(line, "x") == f"the database at {value} failed, x"
    assert known.redact(line, "x", owner=2) == line
    assert value not in known.redact(line, "x", owner=1)


@pytest.mark.parametrize(
    "value", ["ada@acme.example.com", "application/json", "2026-11-29T10:00:00.123Z"]
)
def test_an_ordinary_value_in_credentials_is_hidden_only_in_lines_of_its_organization(
    value: str,
) -> None:
    known = KnownSecrets()
    known.learn([value], owner=1)
    assert name_common_kind(value) == "", "control: it can be saved"
    assert [known.redact(value, "x", owner) for owner in (1, 2, None)] == ["x", value, value]


@pytest.mark.parametrize(
    "secret",
    [
        "correct-horse-battery-staple",
        "abcdefghijklmnopqrst",
        "https://hooks.example.com/services/T0/B0/x8Jk",
        "https://me:hunter22@db.example.com",
        "0f9a4c2b77d1e0f9a4c2",
        "robot@acme.example:8f1c",
    ],
)
def test_a_distinctive_secret_is_hidden_in_lines_without_an_organization(secret: str) -> None:
    known = KnownSecrets()
    known.learn([secret], owner=1)
    assert name_common_kind(secret) == ""
    assert known.redact(f"({secret})", "x") == "(x)"


def test_a_short_secret_is_hidden_only_in_lines_of_its_organization() -> None:
    known = KnownSecrets()
    known.learn(["hunter22"], owner=1)
    assert [known.redact("hunter22", "x", owner) for owner in (1, 2, None)] == [
        "x",
        "hunter22",
        "hunter22",
    ]


def test_a_short_secret_of_the_installation_is_hidden_in_every_line() -> None:
    known = KnownSecrets()
    known.learn(["hunter22"])
    assert [known.redact("hunter22", "x", owner) for owner in (1, 2, None)] == ["x", "x", "x"]


def test_a_secret_is_hidden_in_every_encoding() -> None:
    lines = [
        SECRET,
        repr({"key": SECRET}),
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
    ]
    for line in [*lines, quote(SECRET, safe=""), urlencode({"key": SECRET})]:
        assert "word" not in hidden(line, SECRET), line
        assert "[hidden]" in hidden(line, SECRET)


def test_each_line_of_a_long_secret_is_hidden_and_longer_secrets_are_replaced_first() -> None:
    told = hidden(f"{PEM!r} and hkiG9w0BAQEFAASC alone", PEM)
    assert "MIIE" not in told
    assert "hkiG" not in told
    assert hidden("token-of-acme-and-more", "token-of-acme", "token-of-acme-and-more") == "[hidden]"
    assert hidden("nothing to see", SECRET, PEM) == "nothing to see"


def test_one_owner_cannot_displace_the_secrets_of_another() -> None:
    known = KnownSecrets()
    known.learn(["long-token-of-acme"], owner=1)
    known.learn((f"long-flood-token-{number}" for number in range(MAX_OF_ONE + 1)), owner=2)
    assert (
        known.redact("long-token-of-acme long-flood-token-0 long-flood-token-1 ", "x")
        == "x long-flood-token-0 x "
    )
    for owner in range(3, MAX_OWNERS + 3):
        known.learn([f"a-long-token-of-{owner}."], owner)
    told = known.redact("long-token-of-acme a-long-token-of-3. a-long-token-of-9.", "x")
    assert told == "long-token-of-acme x x"
