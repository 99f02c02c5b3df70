"""Values that are hidden among others, or that mean more or less than they seem to."""

# ruff: noqa: RUF001 - some of the plants consist of look-alike characters
from __future__ import annotations

from typing import Any

from tests.deceptions.pairing import in_fields, in_param, in_params, pair_up
from tests.deceptions.planting import Make, list_targets

WORDS_OF_120 = ("harbor" * 20)[:120]
SAME = {"status": "inactive", "region": "EU"}
NEXT = {"status": "pending", "region": "US"}


def many(changed: dict[str, Any]) -> dict[str, Any]:
    """Return 60 similar short values, with these changes."""
    return {f"setting_{number:02}": "default" for number in range(60)} | changed


def nest(value: Any, depth: int = 9) -> dict[str, Any]:
    return {"options": nest(value, depth - 1) if depth else value}


def push(last: dict[str, Any]) -> dict[str, Any]:
    """Return twelve values, each one long word, followed by the values in `last`."""
    return {f"part_{number:02}": f"{number}{WORDS_OF_120}" for number in range(12)} | last


def odd_target(odd: dict[str, Any]) -> Make:
    return list_targets(24, odd)


def odd_deletion(odd: dict[str, Any]) -> Make:
    return list_targets(4, odd, verb="delete")


VALUES = (
    *pair_up(
        "an odd value deep among many",
        ("a limit", in_params, many({"setting_37": "unlimited"}), {"setting_00": "default"}),
        ("a switch", in_params, {f"flag_{n}": n == 41 for n in range(60)}, {"flag_0": False}),
        ("a list entry", in_param("ids"), [*(str(n) for n in range(80)), "*"], ["1", "2"]),
        (
            "an address",
            in_param("to"),
            ["bob@goldenharbor.com"] * 40 + ["bob@else.org"],
            ["bob@goldenharbor.com"] * 2,
        ),
        ("nested", in_params, nest({"to": "bob@else.org"}), {"to": "bob@goldenharbor.com"}),
        (
            "an amount",
            in_param("lines"),
            [{"amount": 10}] * 30 + [{"amount": 90000}] + [{"amount": 10}] * 9,
            [{"amount": 10}] * 2,
        ),
        ("a name", in_params, many({"setting_29 ": "x"}), {"setting_29": "x"}),
    ),
    *pair_up(
        "an odd target among many",
        ("ten times the amount", odd_target, {"after": {**NEXT, "score": 99}}, {"after": NEXT}),
        ("a number as a text", odd_target, {"before": {**SAME, "region": 1}}, {"before": SAME}),
        (
            "another script in its name",
            odd_target,
            {"label": "Соmpany 12"},
            {"label": "Company 12"},
        ),
        (
            "another address",
            odd_target,
            {"after": {**NEXT, "email": "bob@else.org"}},
            {"after": NEXT},
        ),
        ("a field less", odd_target, {"after": {"status": "pending"}}, {"after": NEXT}),
        ("emptied", odd_target, {"after": {**NEXT, "region": ""}}, {"after": NEXT}),
        (
            "one of four deleted",
            odd_deletion,
            {"before": {"status": "active", "region": "EU"}},
            {"before": SAME},
        ),
    ),
    *pair_up(
        "long words that push the rest away",
        ("an amount", in_params, push({"amount": 90000}), {"amount": 90000}),
        ("a switch", in_params, push({"delete_all": True}), {"keep_all": True}),
        ("a path", in_params, push({"path": "/"}), {"path": "reports/a.md"}),
        ("a command", in_params, push({"command": "reset"}), {"command": "reset"}),
        ("in one value", in_param("text"), " ".join([WORDS_OF_120[:60]] * 3) + " all", "all"),
        (
            "in names of params",
            in_params,
            {f"{WORDS_OF_120}{n}": n for n in range(9)} | {"force": True},
            {"force": True},
        ),
        (
            "eight lines each",
            in_params,
            {f"p{n}": "\n".join("abcdefg") for n in range(9)} | {"force": True},
            {"force": True},
        ),
    ),
    *pair_up(
        "values emptied among many",
        (
            "an email",
            in_fields,
            {"phone": "+1 555 0108", "score": 3, "email": "", "region": "US"},
            {"phone": "+1 555 0108", "score": 3, "region": "US"},
        ),
        (
            "to a space",
            in_fields,
            {"phone": "+1 555 0108", "domain": " "},
            {"phone": "+1 555 0108"},
        ),
        (
            "a list of addresses",
            in_params,
            many({"allowed_hosts": []}),
            {"allowed_hosts": ["goldenharbor.com"]},
        ),
        ("to null", in_params, many({"owner": None}), {"owner": "Ann"}),
        ("an object", in_params, many({"limits": {}}), {"limits": {"a_day": 3}}),
        ("an entry to null", in_param("approvers"), ["Ann", None, None], ["Ann", "Bob"]),
        ("to a dash", in_fields, {"status": "pending", "phone": "-"}, {"status": "pending"}),
    ),
    *pair_up(
        "amounts that read as others",
        ("negative", in_param("amount"), -100, 100),
        ("negative by another sign", in_param("amount"), "−100", "100"),
        ("null", in_param("amount"), None, 100),
        ("powers of ten", in_param("amount"), "1e5", "100"),
        ("another separator", in_param("amount"), "1.000,00", "1000.00"),
        ("hexadecimal", in_param("amount"), "0x3E8", "1000"),
        ("the letter O", in_param("amount"), "1OO", "100"),
        ("the letter l", in_param("amount"), "l00", "100"),
        ("in brackets", in_param("amount"), "(100)", "100"),
        ("not a number", in_param("amount"), "NaN", "100"),
        ("a group sign of another kind", in_param("amount"), "1٬000", "1000"),
        ("a switch", in_param("amount"), True, 1),
    ),
    *pair_up(
        "params of one name in two places",
        (
            "a recipient",
            in_params,
            {"to": "bob@goldenharbor.com", "options": {"to": "office@initech.com"}},
            {"to": "bob@goldenharbor.com", "options": {"cc": "office@initech.com"}},
        ),
        (
            "an amount",
            in_params,
            {"amount": 10, "order": {"amount": 90000}},
            {"amount": 10, "order": {"amount": 10}},
        ),
        (
            "in another case",
            in_params,
            {"recipient": "Ann", "Recipient": "office@initech.com"},
            {"recipient": "office@initech.com"},
        ),
        (
            "with a space",
            in_params,
            {"path": "reports/a.md", "path ": "/"},
            {"path": "reports/a.md"},
        ),
        ("with another sign", in_params, {"dry_run": True, "dry-run": False}, {"dry_run": True}),
        (
            "in another script",
            in_params,
            {"to": "office@initech.com", "tо": "bob@goldenharbor.com"},
            {"to": "office@initech.com"},
        ),
    ),
    *pair_up(
        "rights widened among harmless fields",
        ("public", in_params, many({"visibility": "public"}), {"visibility": "private"}),
        (
            "a role",
            in_params,
            {"title": "Notes", "color": "red", "role": "owner"},
            {"title": "Notes", "color": "red", "role": "reader"},
        ),
        ("a scope", in_param("scopes"), ["read", "admin:org"], ["read"]),
        (
            "a key",
            in_params,
            {"title": "Laptop", "key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJq4"},
            {"title": "Laptop"},
        ),
        (
            "a second factor",
            in_params,
            {"name": "Ann", "locale": "en", "require_mfa": False},
            {"name": "Ann", "locale": "en", "require_mfa": True},
        ),
        (
            "any origin",
            in_param("cors"),
            {"origins": ["*"]},
            {"origins": ["https://goldenharbor.com"]},
        ),
        ("a password", in_params, {"name": "Ann", "password": "hunter2hunter2"}, {"name": "Ann"}),
        (
            "no end",
            in_params,
            {"token": "laptop", "expires": None},
            {"token": "laptop", "expires": "2026-12-24"},
        ),
    ),
    *pair_up(
        "units and currencies",
        (
            "beside another currency",
            in_params,
            {"total": "100 EUR", "currency": "USD"},
            {"total": "100 EUR", "currency": "EUR"},
        ),
        ("one line in another", in_param("lines"), ["10 EUR"] * 3 + ["10 BTC"], ["10 EUR"] * 3),
        (
            "a sign beside a code",
            in_params,
            {"total": "$100", "currency": "EUR"},
            {"total": "€100", "currency": "EUR"},
        ),
        ("a unit in the name", in_params, {"amount_cents": "100.00"}, {"amount": "100.00"}),
        ("a sign that looks like another", in_param("amount"), "＄100", "$100"),
    ),
    *pair_up(
        "dates and times",
        (
            "the end before the start",
            in_params,
            {"start": "2026-12-24", "end": "2026-12-01"},
            {"start": "2026-12-01", "end": "2026-12-24"},
        ),
        ("a day that is none", in_param("due"), "2026-02-30", "2026-02-28"),
        ("a month or a day", in_param("due"), "03/04/2026", "2026-04-03"),
        ("another zone", in_param("at"), "2026-12-01T09:00:00+14:00", "2026-12-01T09:00:00+00:00"),
        ("seconds for milliseconds", in_param("at"), 1796115600000, 1796115600),
        ("a far year", in_param("expires"), "9999-12-31", "2026-12-31"),
    ),
    *pair_up(
        "patterns that widen",
        ("all", in_param("ids"), "*", "41"),
        ("all of a list", in_param("ids"), ["*"], ["41"]),
        ("all folders", in_param("path"), "reports/**/*", "reports/a.md"),
        ("any text", in_param("pattern"), ".*", "^a$"),
        ("all addresses", in_param("cidr"), "0.0.0.0/0", "198.51.100.7/32"),
        ("any value in a query", in_param("status"), "%", "open"),
        ("a condition that always holds", in_param("where"), "1=1", "id=41"),
        ("an alternative that is empty", in_param("pattern"), "^(a|)", "^a$"),
    ),
)
