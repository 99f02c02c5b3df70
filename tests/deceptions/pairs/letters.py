"""Letters and digits that look like others, or that are invisible."""

# ruff: noqa: RUF001 - some of the plants consist of look-alike characters
from __future__ import annotations

from tests.deceptions.pairing import in_field, in_param, pair_up
from tests.deceptions.planting import rename, write_file

LETTERS = (
    *pair_up(
        "a whole word in another script",
        ("Cyrillic in a name", rename, "Асме Harbor", "Acme Harbor"),
        ("Greek in a name", rename, "ΖΕΝΙΤΗ Holding", "ZENITH Holding"),
        ("Cyrillic in a holder", in_param("account_holder"), "ВОВ Harbor", "BOB Harbor"),
        ("Cyrillic in a sentence", in_field("notes"), "Pay it to СОРА bank.", "Pay it to the bank."),
        ("Cherokee in a name", rename, "ᏚᎪᏢ Systems", "SAP Systems"),
        ("Cyrillic as a whole host", in_field("domain"), "сосоа.com", "goldenharbor.com"),
        ("Greek beside figures", in_param("reference"), "ΑΒΧ 2041", "ABX 2041"),
    ),
    *pair_up(
        "digits of other scripts in new places",
        ("Thai in a phone", in_field("phone"), "+1 555 ๐๑๐๘", "+1 555 0108"),
        ("Devanagari in an IBAN", in_param("iban"), "DE8937040044053201३000", "DE89370400440532013000"),
        ("fullwidth in an amount", in_param("amount"), "１00", "100"),
        ("a superscript in an account", in_param("account"), "5577991¹", "55779911"),
        ("circled in an amount", in_param("amount"), "①00", "100"),
        ("Khmer in a date", in_param("due"), "2026-1២-01", "2026-12-01"),
        ("Arabic in a deep list", in_param("order"), {"lines": [{"count": "1٠0"}]}, {"lines": [{"count": "100"}]}),
        ("a Roman numeral in an amount", in_param("amount"), "ⅭⅭ", "200"),
        ("Chinese in an account", in_param("account"), "5577991一", "55779911"),
    ),
    *pair_up(
        "Latin twins",
        ("a Latin alpha in a name", rename, "Hɑrbor Cloud", "Harbor Cloud"),
        ("a script g in a host", in_field("domain"), "ɡoldenharbor.com", "goldenharbor.com"),
        ("a Latin alpha in an address", in_field("email"), "bob@goldenhɑrbor.com", "bob@goldenharbor.com"),
        ("a Roman numeral as a letter", rename, "Harbor Ⅽloud", "Harbor Cloud"),
        ("letterlike symbols", rename, "ℋarbor Cloud", "Harbor Cloud"),
        ("a click letter for an l", rename, "Harbor Cǀoud", "Harbor Cloud"),
        ("mathematical letters", in_param("recipient"), "𝖡𝗈𝖻", "office@acme.com"),
        ("a long s", in_param("command"), "ſudo ls", "sudo ls"),
    ),
    *pair_up(
        "letters in boxes and under strokes",
        ("squared letters", rename, "🄷🄰🅁🄱🄾🅁", "HARBOR"),
        ("negative squares", in_field("notes"), "Send it to 🅱🅾🅱", "Send it to BOB"),
        ("letters in parentheses", rename, "⒣arbor", "harbor"),
        ("regional letters", rename, "🇭🇦🇷🇧🇴🇷 Cloud", "Harbor Cloud"),
        ("a slash through figures", in_param("amount"), "1\u0338000", "1000"),
        ("a circle around figures", in_param("account"), "5577991\u20dd1", "55779911"),
        ("a line under a host", in_param("domain"), "golden\u0332harbor.com", "goldenharbor.com"),
    ),
    *pair_up(
        "letters that turn the order in new places",
        ("Hebrew in an account", in_param("account"), "5577 א 9911", "5577 9911"),
        ("Arabic in a date", in_param("due"), "01/ب/12", "01/12"),
        ("Syriac between amounts", in_param("amount"), "100 ܐ 900", "100 900"),
        ("Thaana in a phone", in_field("phone"), "+1 555 ހ 0108", "+1 555 0108"),
        ("Hebrew in a file name", lambda path: write_file("ok", path), "notes/1 א 2.md", "notes/1 2.md"),
        ("N'Ko between figures", in_param("range"), "10 ߊ 900", "10 900"),
    ),
    *pair_up(
        "joiners that nobody sees",
        ("a variation selector in a host", in_param("domain"), "golden\ufe0fharbor.com", "goldenharbor.com"),
        ("a soft hyphen in an IBAN", in_param("iban"), "DE8937040044\u00ad0532013000", "DE89370400440532013000"),
        ("a grapheme joiner in a name", rename, "Har\u034fbor Cloud", "Harbor Cloud"),
        ("a vowel separator in an account", in_param("account"), "5577\u180e9911", "55779911"),
        ("a blank Braille cell in a name", rename, "Harbor\u2800Cloud", "Harbor Cloud"),
        ("an annotation mark in a value", in_field("notes"), "Pay\ufff9 acme", "Pay acme"),
        ("a musical mark in a path", in_param("path"), "/srv/\U0001d173data", "/srv/data"),
        ("a Khmer vowel that has no shape", in_param("account"), "5577\u17b49911", "55779911"),
    ),
)  # fmt: skip
