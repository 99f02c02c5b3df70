"""Spellings of values, with the correct outcome for rules, limits, standing grants and provenance.

The outcome follows from how a spelling is built, never from the code under test.
"""

# ruff: noqa: RUF001 - some of the spellings consist of look-alike letters
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from tools.toolbox.conditions import Condition, Rule

NAME = "Globex Freight"
LETTER = f"Send it to {NAME} at once."
"""A text that is neither short nor common, so that provenance looks for it."""


@dataclass(frozen=True)
class Spelling:
    """A call, and the conditions that a rule and a limit or grant place on it.

    Attributes:
        rule, limit: the condition of an approval rule, and of a limit and a standing grant.
        planted: a text from outside that has the value in its usual spelling.
        applies: the rule applies.
        holds: the limit and the grant hold.
        is_found: provenance finds the value in the planted text; None if this is not checked.
    """

    kind: str
    params: dict[str, Any]
    rule: Condition
    limit: Condition
    applies: bool
    holds: bool
    planted: str = ""
    is_found: bool | None = None


def list_spellings() -> list[Spelling]:
    """List every spelling of the table."""
    return [
        *_spell_amounts(),
        *_spell_equal_numbers(),
        *_spell_texts(),
        *_spell_paths(),
        *_spell_addresses(),
        *_spell_names(),
    ]


# Amounts: the rule covers amounts from 1,000, the limit and the grant allow at most 1,000.

DIGITS = {
    "Arabic": 0x660,
    "Persian": 0x6F0,
    "Devanagari": 0x966,
    "Bengali": 0x9E6,
    "Gujarati": 0xAE6,
    "Tamil": 0xBE6,
    "Thai": 0xE50,
    "Lao": 0xED0,
    "Tibetan": 0xF20,
    "Myanmar": 0x1040,
    "Khmer": 0x17E0,
    "fullwidth": 0xFF10,
    "bold": 0x1D7CE,
    "double-struck": 0x1D7D8,
    "monospace": 0x1D7F6,
}
FORMATS = (
    "5000", "5,000", "5 000", "5'000", "5_000", "5000.00", "5,000.00", "5.000,00", "+5000", "5\u00a0000", " 5000 ",
    "$5000", "$5,000", "€5000", "£5,000", "¥5000", "₹5,000", "₽5000", "5000€", "5000 EUR", "USD 5000", "EUR 5.000",
    "5e3", "5E3", "5.0e3", "50e2", "0x1388",
)  # fmt: skip
UNREADABLE: tuple[Any, ...] = (
    "", "NaN", "null", "five thousand", "5k", "V thousand", "5000 or more", "2026-01-01", True, False, [], {}, None,
    [None], [[]], [{}], [1, None], {"value": None}, -5000, -1, [-5000], [1, -5000],
)  # fmt: skip


def _spell_amounts() -> Iterator[Spelling]:
    pay = "Please pay 5000 today."

    def build(kind: str, value: Any, is_found: bool | None = None) -> Spelling:
        holds = isinstance(value, int | float) and not isinstance(value, bool) and value <= 1000
        return _about_amount(kind, value, applies=True, holds=holds, planted=pay, is_found=is_found)

    for text in (*FORMATS, *(_translate("5000", zero) for zero in DIGITS.values())):
        yield build("number as text", text, is_found=True)
        yield build("text in a list", [1, text])
    for number in (5000, 5000.0, 1000, 1000.5, 1e6, 10**30):
        yield build("number", number, is_found=True if number == 5000 else None)
        yield build("number in a list", [1, number])
        yield build("number in an object", {"value": number})
    for value in UNREADABLE:
        yield build("incomparable", value)
    for small in (0, 1, 2.5, 100, 999, 999.99, -0.0):
        yield _about_amount("smaller", small, applies=False, holds=True)
        yield _about_amount("smaller in a list", [small, 1], applies=False, holds=False)


def _about_amount(kind: str, value: Any, *, applies: bool, holds: bool, **more: Any) -> Spelling:
    rule, limit = (
        Condition("amount", Rule.MINIMUM, 1000),
        Condition("amount", Rule.MAXIMUM, 1000),
    )
    return Spelling(kind, {"amount": value}, rule, limit, applies, holds, **more)


def _translate(digits: str, zero: int) -> str:
    return "".join(chr(zero + int(digit)) for digit in digits)


# Equal numbers: rule, limit and grant name 100.


def _spell_equal_numbers() -> Iterator[Spelling]:
    equal = Condition("amount", Rule.EQUALS, 100)
    same = (
        100.0,
        -100,
        "100",
        "100.0",
        "1e2",
        [100],
        [[100.0]],
        [1, "100"],
        {"value": 100},
        "ten",
        None,
        True,
    )
    for value in same:
        yield Spelling(
            "other spelling of 100", {"amount": value}, equal, equal, applies=True, holds=False
        )
    yield Spelling("100 itself", {"amount": 100}, equal, equal, applies=True, holds=True)
    for value in (99, 101, 100.5, 1000, 10, 0, [99, 101]):
        yield Spelling(
            "another number", {"amount": value}, equal, equal, applies=False, holds=False
        )
    text = Condition("code", Rule.EQUALS, "100")
    for code in (
        "100.0",
        "1e2",
        "+100",
        "1０0",
        "١٠٠",
        " 100",
        "$100",
        "0x64",
        "(100)",
        100,
        100.0,
    ):
        yield Spelling(
            "other spelling of '100'", {"code": code}, text, text, applies=True, holds=False
        )
    for code in ("99", "1001", "1e3", "abc", "200.0"):
        yield Spelling("another code", {"code": code}, text, text, applies=False, holds=False)


# Texts: the rule, the limit and the grant match the text NAME.

TWINS = str.maketrans({"o": "о", "e": "е", "x": "х", "i": "і"})
WIDE = str.maketrans(
    {chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)} | {" ": "\u3000"}
)


def _escape_all(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


def _style(first: int) -> Callable[[str], str]:
    def change(text: str) -> str:
        return "".join(
            chr(first + ord(char) - 65) if "A" <= char <= "Z" else char for char in text.upper()
        )

    return change


CHANGES: dict[str, Callable[[str], str]] = {
    "upper case": str.upper,
    "lower case": str.lower,
    "swapped case": str.swapcase,
    "wide": lambda text: text.translate(WIDE),
    "twins": lambda text: text.translate(TWINS),
    "twins in upper case": lambda text: text.upper().translate(str.maketrans("EXT", "ЕХТ")),
    "bold": _style(0x1D400),
    "sans-serif": _style(0x1D5A0),
    "monospace": _style(0x1D670),
    "circled": _style(0x24B6),
    "zero width": "\u200b".join,
    "soft hyphens": "\u00ad".join,
    "word joiners": "\u2060".join,
    "struck out": lambda text: "".join(f"{char}\u0336" for char in text),
    "escaped": quote,
    "all escaped": _escape_all,
    "twice escaped": lambda text: quote(_escape_all(text)),
    "four times escaped": lambda text: quote(quote(quote(_escape_all(text)))),
    "spaced": lambda text: f"  {text.replace(' ', '   ')} ",
    "with a wide space": lambda text: text.replace(" ", "\u2003"),
}
"""By name: a change that a reader, or a careless server, does not notice."""


def _spell_texts() -> Iterator[Spelling]:
    equal, one_of = Condition("to", Rule.EQUALS, NAME), Condition("to", Rule.ONE_OF, ["X", NAME])
    start = Condition("to", Rule.PREFIX, "Globex")
    for kind, change in CHANGES.items():
        value = change(NAME)
        yield Spelling(kind, {"to": value}, equal, equal, True, False, LETTER, is_found=True)  # noqa: FBT003 - the columns
        yield Spelling(kind, {"to": ["Acme", value]}, one_of, one_of, applies=True, holds=False)
        holds = value.startswith("Globex")
        yield Spelling(kind, {"to": value}, start, start, applies=True, holds=holds)
    for other in (None, 5, True, {}, [], {"name": NAME}, [[NAME]]):
        yield Spelling("another type", {"to": other}, equal, equal, applies=True, holds=False)
    yield Spelling("the text itself", {"to": NAME}, equal, equal, applies=True, holds=True)
    for name in ("Globex", "Globex Freight Ltd", "Globe Freight", ["Acme", "Initech"]):
        yield Spelling("another text", {"to": name}, equal, equal, applies=False, holds=False)
    yield replace(
        Spelling("another text", {"to": "Initech"}, equal, equal, applies=False, holds=False),
        planted=LETTER,
        is_found=False,
    )


# Paths: the rule covers /srv/keys, the limit and the grant allow /srv/reports/.

DOTS = (
    "..", "%2e%2e", ".%2e", "%2E.", "%252e%252e", "%25252e%25252e", "．．", "‥", "․․", "%c0%ae%c0%ae", "%e0%80%ae.",
    "%u002e%u002e", "\\u002e\\u002e", "&#46;&#46;", ".\u200b.", ".\t.", "..;", "..;a=b", ".. ", "...", "%ef%bc%8e.",
)  # fmt: skip
SLASHES = ("/", "\\", "%2f", "%5c", "%252f", "／", "∕", "⁄", "%c0%af", "\uff3c")


def _spell_paths() -> Iterator[Spelling]:
    keys, reports = (
        Condition("path", Rule.PREFIX, "/srv/keys"),
        Condition("path", Rule.PREFIX, "/srv/reports/"),
    )

    def build(kind: str, path: Any, *, applies: bool, holds: bool) -> Spelling:
        return Spelling(kind, {"path": path}, keys, reports, applies, holds)

    for dots in DOTS:
        yield build("upwards", f"/srv/reports/{dots}/keys/a", applies=True, holds=False)
    for slash in SLASHES:
        yield build("upwards", f"/srv/reports/..{slash}keys", applies=True, holds=False)
        yield build("upwards", f"/srv/reports/a{slash}..{slash}..", applies=True, holds=False)
        yield build("other slash", f"/srv{slash}keys{slash}a", applies=True, holds=False)
    for path in (
        "//srv//keys",
        "/srv/./keys",
        "/SRV/Keys",
        "/srv/%6beys",
        "/srv/%256beys",
        "/srv/kеys",
        None,
        5,
        ["/srv/keys"],
    ):
        yield build("other spelling", path, applies=True, holds=False)
    for path in (
        "/srv/reports/a.md",
        "/srv/reports/a..b",
        "/srv/reports/100%.md",
        "/srv/reports/x%20y",
        "/srv/reports/.a",
    ):
        yield build("inside", path, applies=False, holds=True)
    for path in ("/srv/reportsx/a", "/srv/report", "/tmp/a", "srv/reports/a", "/srv/Reports/a"):
        yield build("elsewhere", path, applies=False, holds=False)


# Addresses: the rule covers evil.test, the limit and the grant allow files.acme.example.


def _spell_addresses() -> Iterator[Spelling]:
    evil = Condition("url", Rule.PREFIX, "https://evil.test/")
    host = Condition("url", Rule.HOST, "evil.test")
    own = Condition("url", Rule.PREFIX, "https://files.acme.example")

    def build(kind: str, url: str, rule: Condition, *, applies: bool, holds: bool) -> Spelling:
        return Spelling(kind, {"url": url}, rule, own, applies, holds)

    for rest in (
        ".evil.test/x",
        "@evil.test/x",
        ":pw@evil.test",
        "-evil.test",
        "%2eevil.test",
        ":8443/x",
        "。evil.test",
        "\\@evil.test/",
        "%2f@evil.test",
        "%252f@evil.test",
        "%5c@evil.test",
    ):
        url, is_evil = f"https://files.acme.example{rest}", "@evil" in rest
        yield build("prefix inside a host", url, evil, applies=is_evil, holds=False)
    for url in (
        "HTTPS://EVIL.test/a",
        "https://evil.test",
        "https://evil.test?q",
        "https://u:p@evil.test/",
        "https://evil.test:443/a",
        "https:evil.test/a",
        "https:\\\\evil.test\\a",
        "//evil.test/a",
        "https://%65vil.test/a",
        "https://еvil.test/a",
        "https://ｅvil.test/",
    ):
        yield build("the same host", url, evil, applies=True, holds=False)
        yield build("the same host", url, host, applies=True, holds=False)
    for url in (
        "https://files.acme.example",
        "https://files.acme.example/a",
        "https://files.acme.example/a?b=1",
        "https://files.acme.example?x",
    ):
        yield build("inside", url, evil, applies=False, holds=True)
        yield build("inside", url, host, applies=False, holds=True)


# Names: the rule, the limit and the grant all refer to the param `amount`.

NAMES = (
    "Amount",
    "AMOUNT",
    "aMOUNT",
    "ａｍｏｕｎｔ",
    "аmount",
    "amоunt",
    "a_mount",
    "am-ount",
    "amount\u200b",
    "am0unt",
    " amount",
    "Аmount",
)


def _spell_names() -> Iterator[Spelling]:
    for name in NAMES:
        yield _about_calls("other name", {name: 5000}, applies=True)
        yield _about_calls("other name", {name: 5}, applies=False)
        both = {"amount": 5, name: 5000}
        yield _about_calls("beside another name", both, applies=True)
    for elsewhere in (
        {"order": {"amount": 5000}}, {"orders": [{"x": 1}, {"amount": 5000}]}, {"data": '{"amount": 5000}'},
        {"patch": [{"op": "replace", "path": "/amount", "value": 5000}]},
        {"fields": [{"name": "amount", "value": 5000}]},
        {"order": {"details": {"AMOUNT": "5000"}}}, {"amount": 5, "order": {"amount": 5000}},
    ):  # fmt: skip
        holds = elsewhere.get("amount") == 5
        yield _about_calls("elsewhere", elsewhere, applies=True, holds=holds)
    for call in (
        {},
        {"other": 5000},
        {"order": {"amount": 5}},
        {"amounts_seen": 5000},
        {"note": "amount 5000"},
    ):
        yield _about_calls("absent", call, applies=False)


def _about_calls(
    kind: str, params: dict[str, Any], *, applies: bool, holds: bool = False
) -> Spelling:
    rule, limit = (
        Condition("amount", Rule.MINIMUM, 1000),
        Condition("amount", Rule.MAXIMUM, 1000),
    )
    return Spelling(kind, params, rule, limit, applies, holds)
