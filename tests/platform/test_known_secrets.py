"""The log hides what the process has learnt, however a line spells it, and nobody can make it forget what is theirs."""

from __future__ import annotations

import json
from urllib.parse import quote, urlencode

from agents.platform.known_secrets import MAX_OF_ONE, MAX_OWNERS, KnownSecrets

SECRET = 'pass\\word "ü"&<1>'
PEM = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----"


def hidden(text: str, *secrets: str) -> str:
    known = KnownSecrets()
    known.learn(secrets)
    return known.redact(text, "[hidden]")


def test_in_every_spelling() -> None:
    lines = [SECRET, repr({"key": SECRET}), json.dumps(SECRET), json.dumps(SECRET, ensure_ascii=False)]
    for line in [*lines, quote(SECRET, safe=""), urlencode({"key": SECRET})]:
        assert "word" not in hidden(line, SECRET), line
        assert "[hidden]" in hidden(line, SECRET)


def test_each_line_of_a_long_one_and_the_longest_first() -> None:
    told = hidden(f"{PEM!r} and hkiG9w0BAQEFAASC alone", PEM)
    assert "MIIE" not in told
    assert "hkiG" not in told
    assert hidden("token-of-acme-and-more", "token-of-acme", "token-of-acme-and-more") == "[hidden]"
    assert hidden("nothing to see", SECRET, PEM) == "nothing to see"


def test_one_owner_pushes_out_only_their_own() -> None:
    known = KnownSecrets()
    known.learn(["token-of-acme"], owner=1)
    known.learn((f"flood-{number}" for number in range(MAX_OF_ONE + 1)), owner=2)
    assert known.redact("token-of-acme flood-0 flood-1 ", "x") == "x flood-0 x "
    for owner in range(3, MAX_OWNERS + 3):
        known.learn([f"other-{owner}."], owner)
    assert known.redact("token-of-acme other-3. other-9.", "x") == "token-of-acme x x"
