"""A value that a call wrote is recognized in every spelling, so that a later read of it does not
count as looking it up."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.features import feature
from tools.toolbox.written_texts import read_written

ACCOUNT = "DE89370400440532013000"


@feature(
    "The gate",
    "A value that the employee wrote itself does not count as looked up, in any spelling",
    "tools/toolbox/written_texts.py",
)
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("put EVIL-4711 there", "EVIL-4711"),
        ({"EVIL-4711": "x"}, "EVIL-4711"),
        ({"a": {"b": [{"EVIL-4711": None}]}}, "EVIL-4711"),
        (["EVIL", "-4711"], "EVIL-4711"),
        ("id=EVIL-4711&a=1", "EVIL-4711"),
        ("xEVIL-4711", "EVIL-4711"),
        ("EVIL-4711/a", "EVIL-4711"),
        ("evil 4711", "EVIL-4711"),
        ("%45VIL-4711", "EVIL-4711"),
        ('{"id": "\\u0045VIL-4711"}', "EVIL-4711"),
        ("&#69;VIL-4711", "EVIL-4711"),
        ("EVIL-\u200b47\u00ad11", "EVIL-4711"),
        ("\uff25VIL-4711", "EVIL-4711"),
        ("mailto:ann@evil.com", "ann@evil.com"),
        ("ann@evil.com", "evil.com"),
        ("DE89 3704 0044 0532 0130 00", ACCOUNT),
        (ACCOUNT, "DE89 3704 0044 0532 0130 00"),
        (4711815, "4711815"),
        (4711815.0, "4711815"),
        (4711, "004711"),
        ("4711 815", 4711815),
        ("004711815", 4711815),
        ("0x47e587", 4711815),
        ("\u0664\u0667\u0661\u0661\u0668\u0661\u0665", 4711815),
        ("5e3", 5000),
        ("qty:7", 7),
        ("id_A-7", "A-7"),
        ("A7", "A-7"),
        ("--", "--"),
        ("%" + "25" * 30 + "45VIL", "EVIL-4711"),
        ("\ufdfa" * 10, "EVIL-4711"),
    ],
)
def test_a_written_value_is_found_in_every_spelling(written: Any, value: Any) -> None:
    assert read_written({"note": written}).may_have(value)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("put EVIL-4711 there", "EVIL-4712"),
        ({"EVIL-4711": "x"}, "EVIL-4712"),
        ("A-77", "A-7"),
        ("xA-7", "A-7"),
        (True, "True"),
        ("qty:7", 8),
        (4711, 711),
        ("12.5", 13),
        ("", "EVIL-4711"),
        ("Grüße aus Köln, 東京", "EVIL-4711"),
    ],
)
def test_another_value_is_not_found(written: Any, value: Any) -> None:
    assert not read_written({"note": written}).may_have(value)


def test_long_texts_are_read_quickly() -> None:
    started = time.process_time()
    for text, value in (
        ("b" + "a" * 400_000 + "b", "a" * 200_000),
        ("a-" * 200_000, "aab"),
        ("1," * 200_000 + "x", 7),
    ):
        read_written({"note": text}).may_have(value)
    assert time.process_time() - started < 3
