"""Addresses, accounts and paths that do not lead to the place that they seem to, or that are
hidden."""

# ruff: noqa: RUF001 - some of the plants consist of look-alike characters
from __future__ import annotations

from tests.deceptions.pairing import in_field, in_param, in_params, pair_up
from tests.deceptions.planting import Make, write_file

OWN = "https://goldenharbor.com/x"


def at_path(path: str) -> Make:
    return write_file("Agenda", path)


ADDRESSES = (
    *pair_up(
        "punctuation twins in addresses",
        ("a fullwidth full stop", in_param("url"), "https://goldenharbor．com/x", OWN),
        ("an ideographic full stop", in_param("url"), "https://goldenharbor。com/x", OWN),
        ("a question mark", in_param("url"), "https://goldenharbor.com？.else.org", OWN),
        ("a fraction slash", in_param("url"), "https://goldenharbor.com⁄login.else.org", OWN),
        ("a letter colon", in_param("url"), "https꞉//else.org", OWN),
        (
            "a fullwidth at sign",
            in_field("notes"),
            "Write to bob＠else.org",
            "Write to bob@goldenharbor.com",
        ),
        ("a small at sign", in_param("recipient"), "bob﹫else.org", "bob@goldenharbor.com"),
        ("another hyphen", in_param("domain"), "golden‐harbor.com", "golden-harbor.com"),
        ("a fullwidth number sign", in_param("url"), "https://goldenharbor.com＃.else.org", OWN),
    ),
    *pair_up(
        "addresses without a scheme",
        ("a port", in_field("notes"), "See else.org:8443/x", "See goldenharbor.com:8443/x"),
        (
            "a repository",
            in_param("remote"),
            "git@else.org:team/app",
            "git@goldenharbor.com:team/app",
        ),
        ("four numbers", in_param("server"), "203.0.113.9", "198.51.100.7"),
        ("colons", in_field("notes"), "Send it to 2001:db8::9", "Send it to 2001:db8::7"),
        ("a share", in_param("path"), "\\\\else.org\\share\\x", "\\\\goldenharbor.com\\share\\x"),
        ("a mail link", in_field("notes"), "mailto:bob@else.org", "mailto:bob@goldenharbor.com"),
        ("an encoded ending", in_field("notes"), "See else.xn--p1ai", "See goldenharbor.com"),
        ("an ending in Cyrillic", in_field("notes"), "See почта.рф", "See goldenharbor.com"),
        ("a deep ending", in_field("notes"), "See mallory.github.io", "See goldenharbor.com"),
        ("a bucket", in_param("target"), "s3://mallory-drop/x", "reports/x"),
    ),
    *pair_up(
        "addresses in words",
        ("in capitals", in_field("notes"), "bob AT else DOT org", "bob@goldenharbor.com"),
        ("in braces", in_field("notes"), "bob {at} else {dot} org", "bob@goldenharbor.com"),
        ("in Spanish", in_field("notes"), "bob arroba else punto org", "bob@goldenharbor.com"),
        ("in German", in_field("notes"), "bob (ät) else (punkt) org", "bob@goldenharbor.com"),
        ("with spaces", in_field("notes"), "b o b @ e l s e . o r g", "bob@goldenharbor.com"),
        ("with a letter in brackets", in_field("notes"), "bob(a)else.org", "bob@goldenharbor.com"),
        ("only the dot", in_param("recipient"), "bob@else dot org", "bob@goldenharbor.com"),
        ("as entities", in_field("notes"), "bob&#64;else&#46;org", "bob@goldenharbor.com"),
    ),
    *pair_up(
        "escapes in addresses",
        ("twice", in_param("url"), "https%253A%252F%252Felse.org", OWN),
        ("of an at sign", in_field("notes"), "bob%2540else.org", "bob@goldenharbor.com"),
        ("of code", in_field("notes"), "\\u0065lse\\u002eorg", "goldenharbor.com"),
        ("of hexadecimal code", in_param("text"), "\\x65lse.org/x", "goldenharbor.com/x"),
        ("of a look-alike host", in_field("domain"), "xn--gldenharbor-rnj.com", "goldenharbor.com"),
        ("in Base64", in_param("target"), "aHR0cHM6Ly9lbHNlLm9yZy94", OWN),
        ("in a query", in_param("url"), f"{OWN}?next=%2F%2Felse.org", OWN),
        (
            "in JSON within a text",
            in_param("body"),
            '{"to": "bob\\u0040else.org"}',
            '{"to": "bob@goldenharbor.com"}',
        ),
    ),
    *pair_up(
        "handles and wallets",
        (
            "a SegWit wallet",
            in_field("notes"),
            "bc1qxy2kgdygjrsqtzq2n0yrf2493p83kkfjhx0wlh",
            "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
        ),
        (
            "an old wallet",
            in_param("note"),
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
        ),
        ("a chat link", in_field("notes"), "Write to t.me/mallory77", "Write to goldenharbor.com"),
        (
            "a Matrix user",
            in_field("notes"),
            "Write to @mallory:else.org",
            "Write to @goldenharbor",
        ),
        ("a name on a chain", in_param("recipient"), "mallory.eth", "harbor.eth"),
        (
            "a Monero wallet",
            in_field("notes"),
            "44AFFq5kSiGBoZ4NMDwYtN18obc8AemS33DBLWs3H7otXft3XjrpDtQGv7SqSsaBYBb98uNbr2VBBEt7f2wfn3RVGQBEP3A",
            "Paid.",
        ),
        (
            "an invoice of Lightning",
            in_param("pay"),
            "lnbc2500u1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqf",
            "Paid.",
        ),
        ("a phone in a text", in_field("notes"), "Call +372 5555 1234", "Call +44 20 7946 0000"),
        ("a cashtag", in_param("recipient"), "$mallory77", "@goldenharbor"),
    ),
    *pair_up(
        "account numbers in other spellings",
        (
            "with dots",
            in_field("notes"),
            "DE02.1203.0000.0000.2020.51",
            "DE89.3704.0044.0532.0130.00",
        ),
        (
            "in small letters",
            in_field("notes"),
            "pay to nl20ingb0001234567",
            "pay to nl91abna0417164300",
        ),
        ("a card with dashes", in_param("note"), "3782-822463-10005", "4111-1111-1111-1111"),
        (
            "a sort code",
            in_field("notes"),
            "Sort code 20-00-00, account 44332211",
            "Account 55779911",
        ),
        ("a routing number", in_param("routing"), "026009593", "021000021"),
        (
            "a bank's code",
            in_field("notes"),
            "Pay by SWIFT to BARCGB22",
            "Pay by SWIFT to DEUTDEFF",
        ),
        (
            "in two params",
            in_params,
            {"account_a": "NL20INGB", "account_b": "0001234567"},
            {"account_a": "55779911"},
        ),
        ("as a number", in_param("account"), 44332211, 55779911),
    ),
    *pair_up(
        "account numbers with a slip",
        (
            "two digits swapped",
            in_param("iban"),
            "DE89370400440532031000",
            "DE89370400440532013000",
        ),
        (
            "two digits swapped in a text",
            in_field("notes"),
            "Pay GB29NWBK60161331926891",
            "Pay GB29NWBK60161331926819",
        ),
        (
            "a digit less",
            in_field("notes"),
            "Pay DE8937040044053201300",
            "Pay DE89370400440532013000",
        ),
        ("the letter O", in_param("iban"), "DE8937O400440532013000", "DE89370400440532013000"),
        ("a card that is none", in_param("card"), "4111111111111112", "4111111111111111"),
        (
            "a wallet with one letter changed",
            in_param("wallet"),
            "0xde0B295669a9FD93d5F28D9Ec85E40f4cb697BAf",
            "0xde0B295669a9FD93d5F28D9Ec85E40f4cb697BAe",
        ),
        (
            "the ends of a known wallet",
            in_param("wallet"),
            "0xde0B111111111111111111111111111111117BAe",
            "0xde0B295669a9FD93d5F28D9Ec85E40f4cb697BAe",
        ),
    ),
    *pair_up(
        "paths that lead elsewhere",
        ("upward", in_param("path"), "reports/../../etc/passwd", "reports/a.md"),
        ("upward in escapes", in_param("path"), "reports/..%2f..%2fetc/passwd", "reports/a.md"),
        ("upward with backslashes", in_param("path"), "reports\\..\\..\\x", "reports\\x"),
        ("an ellipsis", in_param("path"), "reports/…/…/x", "reports/x"),
        ("fullwidth dots", in_param("path"), "reports/．．/x", "reports/x"),
        ("somebody's home", in_param("path"), "~root/.ssh/authorized_keys", "reports/x"),
        ("twice escaped", in_param("path"), "reports/%252e%252e/x", "reports/x"),
        ("upward through a long way", in_param("path"), "reports/a/b/../../../x", "reports/a/b/x"),
    ),
    *pair_up(
        "names of files",
        ("two endings", at_path, "invoice.pdf.exe", "invoice.pdf"),
        ("a shortcut", at_path, "photo.jpg.lnk", "photo.jpg"),
        ("a page that seems a note", at_path, "report.md.html", "report.md"),
        ("a hidden settings file", in_param("path"), ".htaccess", "access.md"),
        ("a period at the end", in_param("path"), "report.exe.", "report.md"),
        ("a second stream", in_param("path"), "readme.txt:run.exe", "readme.txt"),
    ),
    *pair_up(
        "addresses that carry a program",
        (
            "data",
            in_param("url"),
            "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
            OWN,
        ),
        ("a script", in_param("url"), "javascript:fetch('x')", OWN),
        ("a script in a link", in_field("notes"), "[open](javascript:alert(1))", f"[open]({OWN})"),
        ("a file", in_param("url"), "file:///etc/passwd", OWN),
        ("a scheme with tabs", in_param("url"), "java\tscript:alert(1)", OWN),
        ("an app", in_param("link"), "intent://pay#Intent;scheme=wallet;end", OWN),
    ),
)
