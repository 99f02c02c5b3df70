"""Hosts, email addresses, accounts and handles are found by their grammar, however they are
spelled."""

# ruff: noqa: RUF001 - some of the spellings consist of look-alike characters
from __future__ import annotations

import time
from typing import Any

import pytest

from tests import public_suffixes
from tools.contract.contacts import (
    ACCOUNT,
    EMAIL,
    HANDLE,
    HOST,
    PHONE,
    RECIPIENT,
    decode_label,
    find_false_addresses,
    find_opened_host,
    list_contacts,
)


def find(values: Any) -> list[tuple[str, str]]:
    return [(contact.kind, contact.value) for contact in list_contacts(values)]


@pytest.mark.parametrize(
    ("text", "contact"),
    [
        ("see //evil.net/x", (HOST, "evil.net")),
        ("https:evil.net", (HOST, "evil.net")),
        ("https:\\\\evil.net", (HOST, "evil.net")),
        ("visit evil.berlin today", (HOST, "evil.berlin")),
        ("visit evil.xn--p1ai today", (HOST, "evil.xn--p1ai")),
        ("visit пример.рф", (HOST, "пример.рф")),
        ("https%3A%2F%2Fevil.net", (HOST, "evil.net")),
        ("https%253A%252F%252Fevil.net", (HOST, "evil.net")),
        ("evil[.]net", (HOST, "evil.net")),
        ("evil (dot) net", (HOST, "evil.net")),
        ("evil\uff0ecom", (HOST, "evil.com")),
        ("https:∕∕evil。net∕x", (HOST, "evil.net")),
        ("bob (at) evil (dot) net", (EMAIL, "bob@evil.net")),
        ("bob [at] evil.net", (EMAIL, "bob@evil.net")),
        ("bob at evil dot net", (EMAIL, "bob@evil.net")),
        ("bob\uff20evil.net", (EMAIL, "bob@evil.net")),
        ("write to @mallory_77 there", (HANDLE, "@mallory_77")),
        ("de89 3704 0044 0532 0130 00 thanks", (ACCOUNT, "DE89370400440532013000")),
        ("de89-3704-0044-0532-0130-00", (ACCOUNT, "DE89370400440532013000")),
        ("4111-1111-1111-1111", (ACCOUNT, "4111111111111111")),
        ("٤١١١ ١١١١ ١١١١ ١١١١", (ACCOUNT, "4111111111111111")),
        ("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", (ACCOUNT, "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa")),
        (
            "BC1QAR0SRRR7XFKVY5L643LYDNW9RE59GTZZWF5MDQ",
            (ACCOUNT, "BC1QAR0SRRR7XFKVY5L643LYDNW9RE59GTZZWF5MDQ"),
        ),
        ("DE89/3704/0044/0532/0130/00", (ACCOUNT, "DE89370400440532013000")),
        ("DE89  3704  0044  0532  0130  00", (ACCOUNT, "DE89370400440532013000")),
        ("2223003122003222", (ACCOUNT, "2223003122003222")),
        ("rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh", (ACCOUNT, "rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh")),
        (
            "So11111111111111111111111111111111111111112",
            (ACCOUNT, "So11111111111111111111111111111111111111112"),
        ),
        (
            "abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw",
            (ACCOUNT, "abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw"),
        ),
        ("mallory.eth", (ACCOUNT, "mallory.eth")),
        ("http:2130706433", (HOST, "127.0.0.1")),
        ("//0x7f000001/x", (HOST, "127.0.0.1")),
        ("ping 203.0.113.9 now", (HOST, "203.0.113.9")),
        ("\\\\evil\\share", (HOST, "evil")),
        ("https://" + "a" * 400 + "@evil.net", (HOST, "evil.net")),
        ("https://ev\til.net/", (HOST, "evil.net")),
        ("evil\u00ad.net", (HOST, "evil.net")),
        ("evil&#46;net", (HOST, "evil.net")),
        ("evil\\u002enet", (HOST, "evil.net")),
        ("evil\u00b7net", (HOST, "evil.net")),
        ("https%25253A%25252F%25252Fevil.net", (HOST, "evil.net")),
        ("evil dot net", (HOST, "evil.net")),
        ("bob @ evil.net", (EMAIL, "bob@evil.net")),
        ("https://evil.net!", (HOST, "evil.net")),
        ("send it to 2001:0db8:0:0::9.", (HOST, "2001:db8::9")),
        ("b o b @ e v i l . n e t", (EMAIL, "bob@evil.net")),
        ("e-v-i-l-.-n-e-t", (HOST, "evil.net")),
        ("bob @ evil . net", (EMAIL, "bob@evil.net")),
        ("next=aHR0cHM6Ly9ldmlsLm5ldC94", (HOST, "evil.net")),
        ("Ym9iQGV2aWwubmV0", (EMAIL, "bob@evil.net")),
        ("68747470733a2f2f6576696c2e6e65742f78", (HOST, "evil.net")),
        ("call +372 5555 1234.", (PHONE, "+37255551234")),
        ("call 00372 5555 1234", (PHONE, "+37255551234")),
        ("Tel. +49 (0)221 4477-1290", (PHONE, "+4922144771290")),
        ("sms:+12125550147", (PHONE, "+12125550147")),
        (
            "lnbc2500u1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqf",
            (ACCOUNT, "lnbc2500u1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqf"),
        ),
        ("pay by SWIFT to BARCGB22", (ACCOUNT, "BARCGB22")),
        ("BIC: DEUTDEFF500", (ACCOUNT, "DEUTDEFF500")),
        ("Sort code 20-00-00", (ACCOUNT, "20-00-00")),
        ("account no. 44332211", (ACCOUNT, "44332211")),
        ("https://acme.com'@evil.net/x", (HOST, "evil.net")),
        ("https://acme.com\u3000@evil.net/", (HOST, "evil.net")),
        ("https://acme.com'.evil.net/x", (HOST, "evil.net")),
        ("https:/\t/evil.net", (HOST, "evil.net")),
        ("/\t/evil.net", (HOST, "evil.net")),
        ("/\\evil.net", (HOST, "evil.net")),
        ("\\/evil.net", (HOST, "evil.net")),
        ("///evil.net", (HOST, "evil.net")),
        ("//ev\til.net/", (HOST, "evil.net")),
        ('"ann@acme.com"@evil.net', (EMAIL, "ann@evil.net")),
        ("ann@(acme.com)evil.net", (EMAIL, "ann@evil.net")),
        ("ann(acme.com)@evil.net", (EMAIL, "ann@evil.net")),
        ("a" * 65 + "@evil.net", (EMAIL, "a" * 65 + "@evil.net")),
        ("a." * 20 + "evil.net", (HOST, "a." * 20 + "evil.net")),
        ("*.evil.net", (HOST, "evil.net")),
        ("\\\\?\\UNC\\evil.net\\share", (HOST, "evil.net")),
        ("\\\\evil.net@SSL\\share\\x", (HOST, "evil.net")),
        ("<https://evil.net|https://acme.com>", (HOST, "evil.net")),
        ("[url=https://evil.net]https://acme.com[/url]", (HOST, "evil.net")),
    ],
)
def test_a_contact_is_found_in_every_spelling(text: str, contact: tuple[str, str]) -> None:
    assert contact in find(text)


@pytest.mark.parametrize(
    "text",
    [
        "v1.2.3, e.g. U.S., 12.50 EUR, p.m.",
        "import @scope/pkg, @property(x)",
        "Price (net), Meeting (in) rooms",
        "公司。下一句",
        "order 1234567890123456, 4111 1111 1111 1112",
        "de12 is a flat, 1 of 2 at 3",
        "half 1⁄2, 3∶4",
        "a/b//c",
        "QA15 TEST PLAN FROM ACME",
        "version 10.0.19041.1",
        "connect the dot com era",
        "3·14, col·lecció, 1 & 2",
        "// 12 of 30",
        "C:\\Users\\me",
        "dead::beef, std::add, a[1::2], 12:30:45, aa:bb:cc:dd:ee:ff",
        "A B C . D E F, 1 . 2 . 3 . 4 . 5 . 6, a, b, c, d, e.g, f",
        "meet @ noon. So what",
        "internationalization, 0123456789abcdef0123456789abcdef, reports/quarterly/2026",
        "growth +12 500 000, +250 000 000 EUR, +1 555 0123, 00-12-34-56",
        "CUSTOMER DOCUMENT SERVER01, the account since 2026-11-30, bank of 20261130",
        "@weekly",
        "*.zip, *.test.py",
        "begin with https:// or http://",
        "\\/foo, ..\\..\\secret.txt",
    ],
)
def test_ordinary_text_does_not_contain_a_contact(text: str) -> None:
    assert find(text) == []


@pytest.mark.parametrize(
    ("values", "contact"),
    [
        ({"accountNumber": 12345678}, (ACCOUNT, "12345678")),
        ({"account": {"id": 12345678}}, (ACCOUNT, "12345678")),
        ({"to": [{"name": "Mallory"}]}, (RECIPIENT, "Mallory")),
        ({"payeeName": "Mallory"}, (RECIPIENT, "Mallory")),
        ({"host": "evil"}, (HOST, "evil")),
        ({"server": {"name": "evil"}}, (HOST, "evil")),
        ({"bic": "DEUTDEFF"}, (ACCOUNT, "DEUTDEFF")),
        ({"card": "4111111111111112"}, (ACCOUNT, "4111111111111112")),
        ({"to": "ann/@evil.net"}, (RECIPIENT, "ann/@evil.net")),
        ({"domain": ".evil.net"}, (HOST, "evil.net")),
        ({"file_url": "evil.net/report.pdf"}, (HOST, "evil.net")),
        ({"ip": "010.10.10.10"}, (HOST, "8.10.10.10")),
        ({"host": "0x7f.1"}, (HOST, "127.0.0.1")),
        ({"host": 2130706433}, (HOST, "127.0.0.1")),
    ],
)
def test_a_contact_is_found_by_the_words_of_its_field(
    values: Any, contact: tuple[str, str]
) -> None:
    assert contact in find(values)


@pytest.mark.parametrize(
    "values",
    [
        {"count": 12345678},
        {"accounts": True},
        {"note": {"name": "Mallory"}},
        {"order": "4111111111111112"},
        {"card": "65f1c0ab"},
        {"phone": "+37255551234"},
        {"version": "010.10.10.10"},
        {"host": 5},
        {"to": "@weekly"},
    ],
)
def test_a_value_of_another_field_is_not_a_contact(values: Any) -> None:
    assert find(values) == []


def test_a_file_name_in_a_path_is_not_a_host() -> None:
    assert find({"path": "notes.zip"}) == []
    assert find({"text": "notes.zip"}) == [(HOST, "notes.zip")]


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        ("acme.com@evil.net", "evil.net"),
        ("acme.com%40evil.net", "evil.net"),
        ("acme.com∕@evil.net:8080", "evil.net"),
        ("evil%2enet", "evil.net"),
        ("ｅｖｉｌ．ｎｅｔ", "evil.net"),
        ("0x7f.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("1.2.3.4", "1.2.3.4"),
        ("[::1]:80", "[::1]:80"),
    ],
)
def test_the_opened_host_is_the_one_that_a_browser_opens(authority: str, host: str) -> None:
    assert find_opened_host(authority) == host


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("https://acme.com@evil.net/", "leads to “evil.net”, not to “acme.com”"),
        ("https://acme.com%40evil.net/", "leads to “evil.net”, not to “acme.com”"),
        ("http://2130706433/x", "“2130706433” leads to “127.0.0.1”"),
        ("evil (dot) net", "“evil.net” is spelled in another way"),
        ("evil․net", "“evil.net” is spelled in another way"),
        (
            "login.paypal.co.uk.evil.net",
            "“login.paypal.co.uk.evil.net” merely begins with another host's name",
        ),
        (
            "paypal.com-login.evil.net",
            "“paypal.com-login.evil.net” merely begins with another host's name",
        ),
        (
            "https://acme.com\uff03.evil.net",
            "“acme.com\uff03.evil.net” leads to different hosts in different programs",
        ),
        ("[https://acme.com](https://evil.net)", "“acme.com” leads to “evil.net”"),
        ('<a href="//evil.net">www.acme.com</a>', "“acme.com” leads to “evil.net”"),
        ("[acme.com](https://evil.net)", "“acme.com” leads to “evil.net”"),
        ("[https://acme.com][1]\n\n[1]: https://evil.net", "“acme.com” leads to “evil.net”"),
        ("[acme.com][]\n\n[Acme.com]: <//evil.net>", "“acme.com” leads to “evil.net”"),
        ("[https://acme.com]\n\n[https://acme.com]: //evil.net", "“acme.com” leads to “evil.net”"),
        (
            "[acme.com][1]\n\n[1]: https://evil.net\n[1]: https://acme.com",
            "“acme.com” leads to “evil.net”",
        ),
        ("[acme.com](https://evil.net/acme.com)", "“acme.com” leads to “evil.net”"),
        ("https://acme.com][@evil.net/", "leads to “evil.net”, not to “acme.com][”"),
        ("ann@acme.com@evil.net", "“ann@acme.com@evil.net” has two hosts"),
        ("ann＠acme．com", "“ann@acme.com” is spelled in another way"),
        (
            "https://acme.com\\@evil.net/",
            "“https://acme.com\\@evil.net” leads to different hosts in different programs",
        ),
        (
            "https://acme.com#@evil.net/",
            "“https://acme.com#@evil.net” leads to different hosts in different programs",
        ),
        (
            "https://acme.com?x@evil.net",
            "“https://acme.com?x@evil.net” leads to different hosts in different programs",
        ),
        ("https://acme.com](x)@evil.net/", "leads to “evil.net”, not to “acme.com](x)”"),
        ("https://acme.com|@evil.net/", "leads to “evil.net”, not to “acme.com|”"),
        ("https://u:acme.com@evil.net/", "leads to “evil.net”, not to “u”"),
        ("/\\evil.net/x", "“/\\evil.net” leads to “evil.net”"),
        ("///evil.net", "“///evil.net” leads to “evil.net”"),
        ("https:/\t/evil.net", "“evil.net” is spelled in another way"),
        ("ht\ntps://evil.net/", "“https://evil.net” is spelled in another way"),
        ('"ann@acme.com"@evil.net', "“ann@acme.com'@evil.net” has two hosts"),
        ("ann@(acme.com)evil.net", "“ann@(acme.com)evil.net” has two hosts"),
        ("@evil.net:ann@acme.com", "“@evil.net:ann@acme.com” has two hosts"),
        (
            "ann@acme.com-login.evil.net",
            "“acme.com-login.evil.net” merely begins with another host's name",
        ),
        (
            "https://acme.com,.evil.net/",
            "“acme.com,.evil.net” merely begins with another host's name",
        ),
        ("https://paypal@evil.net/login", "leads to “evil.net”, not to “paypal”"),
        ("//paypal@evil.net", "leads to “evil.net”, not to “paypal”"),
        (
            f"//www.acme.com{'a' * 500}@evil.net/",
            (
                "“www.acme.comaaaaaaaaaaaaaa…aaaaaaaaaaaaa” leads to different hosts in different "
                "programs"
            ),
        ),
        ("https://PayPaI.com", "“PayPaI.com” contains a capital I that looks like a small l"),
        ("billing@PayPaI.com", "“PayPaI.com” contains a capital I that looks like a small l"),
        ("www.appIe.com", "“www.appIe.com” contains a capital I that looks like a small l"),
    ],
)
def test_a_misleading_address_is_explained(text: str, reason: str) -> None:
    assert reason in list(find_false_addresses(text))


def test_an_honest_address_does_not_need_an_explanation() -> None:
    text = (
        "See https://acme.com/a?b=1 and acme.com, 1.2.3.4, my-org-name.github.io, org.apache.tools, "
        "https://acme.com?to=a@acme.com, https://acme.com/x?to=ann%40acme.com, https://acme.com/@ann, "
        "ssh ann@acme.com, @ann@acme.com. "
        "ssh://git@github.com/acme/repo.git postgres://app:p%40ss@db.acme.com/main ann@acme.com.au "
        "LinkedIn.com, OpenAI.com, MyInbox.com, ING.com, (https://acme.com), <https://acme.com>"
    )
    assert list(find_false_addresses(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "[https://acme.com](https://acme.com)",
        "[https://acme.com/x](https://docs.acme.com/x)",
        "[README.md](https://acme.com/README.md)",
        "[acme.com](https://docs.acme.com/x)",
        "[acme][1]\n\n[1]: https://evil.net",
        "[acme.com][1], but no address",
        "[acme.com][1]\n\n[1]: https://acme.com\n[1]: https://evil.net",
        "see [acme.com] and [x]: https://evil.net",
        "Dr.med. Anna Huber <praxis@huber.at>",
        "M.de Jong <m.dejong@acme.nl>",
        "https://acme.com\ninfo@acme.com",
        "y = relu(x.T)@W.values",
        '<a href="https://acme.com/y">www.acme.com</a>',
        "\u8bf7\u770bhttps://acme.com\uff1f",
    ],
)
def test_a_link_whose_text_names_its_own_site_does_not_need_an_explanation(text: str) -> None:
    assert list(find_false_addresses(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "https://acme.com'@evil.net/x",
        'https://acme.com"@evil.net/x',
        "https://acme.com<@evil.net/x",
        "https://acme.com>@evil.net/x",
        "https:acme.com'@evil.net/x",
        "//acme.com'@evil.net/x",
        "//acme.com\\@evil.net/x",
        "https://acme.com @evil.net/",
        "https://acme.com\u3000@evil.net/",
        "https://acme.com'a\"b@evil.net/",
        "https://acme.com'.evil.net/x",
        "https://acme.com'x.evil.net/",
        "https://acme.com\\.evil.net/x",
        "see https://acme.com'@evil.net/x now",
    ],
)
def test_an_address_that_ends_earlier_in_some_programs_is_explained(text: str) -> None:
    assert any("different hosts" in reason for reason in find_false_addresses(text))


@pytest.mark.parametrize(
    "text",
    [
        '<a href="https://acme.com">x@y.com</a>',
        "<a href=https://acme.com>@ann.bsky.social</a>",
        "'https://acme.com' and ann@acme.com",
        "https://acme.com ann@acme.org",
        "https://acme.com\nThanks",
        '{"url":"https://acme.com","to":"@acme.org"}',
        "'https://acme.com'.rstrip.call()",
        r"https://api\.acme\.com/.*",
        "[https://acme.com](mailto:ann@acme.org)",
        "<https://acme.com|ann@acme.org>",
        "Ann Lee <ann@acme.com>",
        "ann.li@acme.com <ann.li@acme.com>",
        "bob@acme.org, Ann <ann@acme.com>",
        '"Acme.com" <news@mail.acme.com>',
        "Dr.Li <li@acme.com>",
        r"\\server\share\ann@acme.org",
        r"file://C:\share\ann@acme.org",
        "Please forward the bill from acme.org to Ann <ann@acme.com>",
    ],
)
def test_an_address_beside_another_does_not_need_an_explanation(text: str) -> None:
    assert list(find_false_addresses(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        '<a href="https://evil.net"><b>acme.com</b></a>',
        "<a title='href=\"//acme.com\"' href=https://evil.net><span>https://acme.com</span></a>",
        '<a title=">" href="//evil.net">acme.com</a>',
        "[**acme.com**](https://evil.net)",
        "[acme.com &rarr;](https://evil.net)",
        "<https://evil.net|https://acme.com>",
        "[url=https://evil.net]https://acme.com[/url]",
        "[url=//evil.net][b]acme.com[/b][/url]",
        "[https://acme.com|https://evil.net]",
        "`https://acme.com <https://evil.net>`_",
        '"ann@acme.com" <eve@evil.net>',
        "ann@acme.com <eve@evil.net>",
        "Ann (acme.com) <eve@evil.net>",
    ],
)
def test_a_link_or_name_with_another_host_is_explained(text: str) -> None:
    assert list(find_false_addresses(text)) == ["“acme.com” leads to “evil.net”"]


@pytest.mark.parametrize(
    "text",
    [
        "http://1.1.1." + "9" * 5_000,
        "http://" + "9" * 5_000,
        "&#" + "1" * 5_000 + ";",
        ("[" + ("_" * 20 + ".") * 18 + " a b](//x.co) ") * 48,
        "a.co " * 12_000 + "\N{GRINNING FACE}",
        "<a " + "href=" * 79 + "x" * 19_000,
        "https://" + "a.com." * 3_000 + "~",
        "https:" * 3_000,
        "[a]: " + "x" * 19_000,
        "%25" * 6_666,
        "https://a.com]@" * 1_300,
        '<a href="' * 2_000,
    ],
)
def test_a_long_hostile_text_is_read_quickly(text: str) -> None:
    start = time.process_time()
    list(find_false_addresses(text))
    list_contacts({"url": text, text: 1})
    assert time.process_time() - start < 5


def test_a_label_that_is_not_valid_punycode_is_not_decoded() -> None:
    assert decode_label("xn--b-7sb6873n") == "xn--b-7sb6873n"
    assert decode_label("xn--Bcher-kva") == "Bücher"


def test_the_list_of_host_endings_is_the_generated_one() -> None:
    page = public_suffixes.MODULE.read_text(encoding="utf-8")
    assert page == public_suffixes.render(), "`python -m tests.public_suffixes` writes the module"
