"""Account numbers in texts: IBANs, card numbers and wallets, distinguished from other numbers by
their checksums."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b")
"""An IBAN as banks print it, which counts even if its checksum is wrong."""
_IBAN_IN_ANY_FORM = re.compile(r"\b[a-z]{2}\d{2}(?:[ .-]?[a-z0-9]){11,30}\b", re.IGNORECASE)
_CARD = re.compile(r"\b[3-6]\d{3}(?:[ .-]?\d){9,15}\b")
_WALLET = re.compile(r"\b0x[0-9a-f]{40}\b|\b(?:bc|tb|ltc)1[02-9ac-hj-np-z]{11,87}\b", re.IGNORECASE)
_CHECKED_WALLET = re.compile(r"\b[13LMDT][1-9A-HJ-NP-Za-km-z]{25,34}\b")
_LONG_WORD = re.compile(r"[A-Za-z0-9]{13}")
"""A word of letters and digits that every wallet address contains, as a quick test."""
_MANY_DIGITS = re.compile(r"\d{2}(?:[ .-]?[A-Za-z0-9]){9}")
"""Digits and letters that every IBAN and card number contains, as a quick test."""
_SEPARATORS = re.compile(r"[ .-]")
_BASE_58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
SHORTEST_IBAN, LONGEST_IBAN = 15, 34
CHECKSUM_BYTES, WALLET_BYTES = 4, 25


def find_accounts(text: str) -> Iterator[str]:
    """Yield the account numbers in the text, with their separators removed; some come more than
    once."""
    if _LONG_WORD.search(text):
        yield from _find_wallets(text)
    if not _MANY_DIGITS.search(text):
        return
    yield from (_join(found) for found in _IBAN.findall(text))
    for found in _IBAN_IN_ANY_FORM.finditer(text):
        if account := _find_iban(found[0]):
            yield account
    for found in _CARD.finditer(text):
        digits = _join(found[0])
        if _has_luhn_checksum(digits):
            yield digits


def _find_wallets(text: str) -> Iterator[str]:
    yield from (found[0] for found in _WALLET.finditer(text))
    yield from (
        found[0] for found in _CHECKED_WALLET.finditer(text) if _has_base58_checksum(found[0])
    )


def _join(account: str) -> str:
    return _SEPARATORS.sub("", account)


def _find_iban(text: str) -> str:
    """Find the IBAN with which the text begins; words may follow it. Return "" if there is none."""
    ends = [found.start() for found in _SEPARATORS.finditer(text)]
    for end in (len(text), *reversed(ends)):
        account = _join(text[:end]).upper()
        if SHORTEST_IBAN <= len(account) <= LONGEST_IBAN and _has_iban_checksum(account):
            return account
    return ""


def _has_iban_checksum(account: str) -> bool:
    turned = account[4:] + account[:4]
    return int("".join(str(int(char, 36)) for char in turned)) % 97 == 1


def _has_luhn_checksum(digits: str) -> bool:
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(each - 9 * (each > 9) for each in doubled) % 10 == 0


def _has_base58_checksum(address: str) -> bool:
    number = 0
    for char in address:
        number = number * 58 + _BASE_58.index(char)
    if number.bit_length() > WALLET_BYTES * 8:
        return False
    raw = number.to_bytes(WALLET_BYTES, "big")
    checksum = hashlib.sha256(hashlib.sha256(raw[:-CHECKSUM_BYTES]).digest()).digest()
    return raw[-CHECKSUM_BYTES:] == checksum[:CHECKSUM_BYTES]
