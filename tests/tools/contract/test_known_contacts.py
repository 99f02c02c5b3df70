"""Keys by which a new contact is compared with the contacts in use; honest new contacts do not
resemble any of them."""

# ruff: noqa: RUF001 - some of the hosts consist of look-alike letters
from __future__ import annotations

import random
import time

import pytest

from tests.features import feature
from tools.contract.contacts import ACCOUNT, EMAIL, HANDLE, HOST, RECIPIENT
from tools.contract.host_names import split_host
from tools.contract.known_contacts import KnownContacts
from tools.office.demo_companies import generate_demo_companies

IN_USE = (
    *((HOST, "acme.com"), (HOST, "golden-harbor.com"), (HOST, "www.orbit.com.au")),
    *((HOST, "mail1.vendor.com"), (HOST, "acme.zendesk.com"), (HOST, "198.51.100.7")),
    *((EMAIL, "jonathan@harbor.io"), (EMAIL, "ann@harbor.io"), (EMAIL, "bob@bücher.example")),
    *((HANDLE, "@goldenharbor"), (RECIPIENT, "Jonathan Smith"), (RECIPIENT, "Invoice 41")),
    *((ACCOUNT, "DE89370400440532013000"), (ACCOUNT, "55779911")),
    (ACCOUNT, "0xde0B295669a9FD93d5F28D9Ec85E40f4cb697BAe"),
)


def index(*contacts: tuple[str, str]) -> KnownContacts:
    known = KnownContacts()
    for contact in contacts:
        known.add(*contact)
    return known


@pytest.mark.parametrize(
    ("host", "divided"),
    [
        ("www.acme.com", (("www",), "acme", "com")),
        ("pay.acme.co.uk", (("pay",), "acme", "co.uk")),
        ("co.uk", ((), "co", "uk")),
        ("acme.anything.ck", ((), "acme", "anything.ck")),
        ("xn--bcher-kva.example", ((), "bücher", "example")),
        ("localhost", None),
        ("203.0.113.9", None),
    ],
)
def test_a_host_is_divided_by_the_public_suffix_list(host: str, divided: object) -> None:
    assert split_host(host) == divided


@feature(
    "The gate",
    "A new contact that resembles one in use is shown beside it",
    "tools/contract/known_contacts.py",
)
@pytest.mark.parametrize(
    ("kind", "value", "words", "other"),
    [
        *(
            (HOST, host, "has another ending than", "acme.com")
            for host in ("acme.co", "acme.org.uk", "www.acme.shop")
        ),
        *(
            (HOST, host, "contains the name of", "acme.com")
            for host in (
                *("acme-invoices.com", "my-acme.net", "pay-acme-now.net", "acmeinvoices.com"),
                *("wwwacme.com", "acme2.com", "acme.com.evil.example", "acme.evil.example"),
                *("acme.co.evil.example", "acme-login.evil.example", "acme.com-login.example"),
            )
        ),
        *(
            (HOST, host, "differs by one character from", "acme.com")
            for host in ("acmee.com", "acne.com", "amce.com", "pay.acm.e.acmme.com")
        ),
        *(
            (HOST, host, "looks like, but is not,", "acme.com")
            for host in ("acrne.com", "аcme.net")
        ),
        (HOST, "goldenharbor.com", "looks like, but is not,", "golden-harbor.com"),
        (HOST, "orbit.net.au", "has another ending than", "orbit.com.au"),
        (HOST, "xn--bcher-kva.com", "has another ending than", "bücher.example"),
        (EMAIL, "bob@acme-pay.com", "contains the name of", "acme.com"),
        (EMAIL, "jonathon@harbor.io", "differs by one character from", "jonathan@harbor.io"),
        (HANDLE, "@goldenharb0r", "looks like, but is not,", "@goldenharbor"),
        (HANDLE, "@goldenharbour", "differs by one character from", "@goldenharbor"),
        (RECIPIENT, "Jonathan Smiht", "differs by one character from", "Jonathan Smith"),
        (ACCOUNT, "55779912", "differs by one character from", "55779911"),
        *(
            (ACCOUNT, value, words, "DE89370400440532013000")
            for value, words in (
                ("DE89370400440532031000", "differs by one character from"),
                ("DE8937O400440532013000", "looks like, but is not,"),
            )
        ),
        (ACCOUNT, f"0xde0B{'1' * 32}7BAe", "begins and ends like", IN_USE[-1][1]),
    ],
)
def test_a_contact_resembles_one_in_use(kind: str, value: str, words: str, other: str) -> None:
    assert index(*IN_USE).describe(kind, value) == (words, other)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(
            (HOST, host)
            for host in (
                *("pay.acme.com", "www.acme.com", "evil.com.au", "else.org", "harbour-trade.com"),
                *("mail2.vendor.com", "acm.org", "203.0.113.9", "198.51.100.8", "db1"),
            )
        ),
        *((EMAIL, "anna@harbor.io"), (EMAIL, "maria@harbor.io"), (EMAIL, "ann@else.org")),
        *((HANDLE, "@harbor"), (RECIPIENT, "Maria Jones"), (RECIPIENT, "Invoice 42")),
        *((RECIPIENT, "jonathan smith"), (ACCOUNT, "66880022")),
        (ACCOUNT, "DE02120300000000202051"),
    ],
)
def test_an_honest_contact_does_not_resemble_another(kind: str, value: str) -> None:
    assert index(*IN_USE).describe(kind, value) is None


def test_a_word_in_the_hosts_of_several_owners_is_not_a_resemblance() -> None:
    hosts = ["docs.com", "docs.acme.com", "docs.orbit.io"]
    known = index(*((HOST, host) for host in hosts))
    assert known.describe(HOST, "my-docs.example") == ("contains the name of", "docs.com")
    known.add(HOST, "docs-vendor.net")
    assert known.describe(HOST, "my-docs.example") is None
    assert known.describe(HOST, "docs.net") == ("has another ending than", "docs.com")


def test_a_short_beginning_of_several_hosts_is_not_a_resemblance() -> None:
    known = index((HOST, "star.com"))
    assert known.describe(HOST, "starpay.com") == ("contains the name of", "star.com")
    known.add(HOST, "starfish.org")
    assert known.describe(HOST, "starpay.com") is None
    assert known.describe(HOST, "star-pay.com") == ("contains the name of", "star.com")


def test_accounts_in_a_series_do_not_resemble_each_other() -> None:
    accounts = [(ACCOUNT, f"7000{number}") for number in range(1_000, 1_004)]
    assert index(*accounts[:2]).describe(*accounts[3]) is not None
    assert index(*accounts[:3]).describe(*accounts[3]) is None


def test_at_most_two_percent_of_2000_companies_have_hosts_that_resemble_others() -> None:
    hosts = [each["domain"] for each in generate_demo_companies(2_000)]
    hosts = list(dict.fromkeys(host.removesuffix(".example") + ".com" for host in hosts))
    random.Random(39).shuffle(hosts)
    half = len(hosts) // 2
    known = index(*((HOST, host) for host in hosts[:half]))
    found = [(host, like) for host in hosts[half:] if (like := known.describe(HOST, host))]
    assert len(found) <= half * 0.02, found


def make_word(rng: random.Random) -> str:
    syllables = (
        rng.choice("bcdfghklmnprst") + rng.choice("aeiou") + rng.choice("nrstlx") for _ in range(3)
    )
    return "".join(syllables)[: rng.randint(6, 9)]


def test_twenty_thousand_contacts_cost_hardly_more_than_two_thousand() -> None:
    rng = random.Random(20)
    hosts = [f"{make_word(rng)}{rng.choice(('.com', '.de', '.co.uk'))}" for _ in range(20_000)]
    used = [
        (EMAIL, f"{make_word(rng)}@{host}") if rng.random() < 0.5 else (HOST, host)
        for host in hosts
    ]
    new = [(HOST, f"{make_word(rng)}-{make_word(rng)}.org") for _ in range(500)]
    new += [(EMAIL, f"{make_word(rng)}@{make_word(rng)}.net") for _ in range(500)]
    costs = []
    for count in (2_000, 20_000):
        known, start = KnownContacts(), time.process_time()
        for contact in used[:count]:
            known.add(*contact)
        built = time.process_time()
        for contact in new:
            known.describe(*contact)
        costs.append((time.process_time() - built) / len(new) * 1e6)
        print(f"{count:,} known: built in {built - start:.2f} s, {costs[-1]:.0f} µs for a new one")
    assert costs[1] < costs[0] * 4
