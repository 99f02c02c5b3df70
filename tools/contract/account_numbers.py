"""Account numbers in texts: IBANs, card numbers and wallets, recognized by form or checksum, and
other numbers after a word such as *account*."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from tools.contract.host_endings import ENDINGS
from tools.contract.param_words import WORDS, NamedThing

_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b")
"""An IBAN as banks print it, which counts even if its checksum is wrong."""
FEWEST_DIGITS = 8
"""The minimum number of digits in an IBAN; other words in capitals have fewer digits."""
_IBAN_IN_ANY_FORM = re.compile(r"\b[a-z]{2}\d{2}(?:[ .,/_-]{0,2}[a-z0-9]){11,30}\b", re.IGNORECASE)
_CARD = re.compile(r"\b(?:[3-6]\d{3}(?:[ .,/_-]{0,2}\d){9,15}|2[2-7]\d\d(?:[ .,/_-]{0,2}\d){12})\b")
_WALLET = re.compile(
    r"\b0x[0-9a-f]{40}\b|\b[48][1-9A-HJ-NP-Za-km-z]{94}\b|\bG[A-Z2-7]{55}\b",
    re.IGNORECASE,
)
"""Wallets of Ethereum, Monero and Stellar, recognized by their length."""
_ENS_NAME = re.compile(r"\b[\w-]{2,60}\.eth\b")
_BECH32 = re.compile(r"\b(?=[a-z]{1,20}1)([a-z]{1,20})1([02-9ac-hj-np-z]{38,110})\b")
_INVOICE = re.compile(r"\bln[a-z0-9]{1,20}?1[02-9ac-hj-np-z]{30,}\b", re.IGNORECASE)
"""Invoices, offers and links of Lightning, in which an amount may stand before the separator."""
_BANK_CODE = re.compile(r"[A-Z]{4}([A-Z]{2})[A-Z0-9]{2}(?:[A-Z0-9]{3})?")
"""The code of a bank (BIC): four letters for the bank, then its country, its location and, in some
codes, a branch."""
_LABEL = re.compile(
    rf"\b(?:({'|'.join(sorted(WORDS[NamedThing.ACCOUNT]))}|sort code)s?)\b"
    r"[\s:#.=(-]{0,3}(?:[a-z]{2,6}\.?[\s:#.=(-]{1,3})?",
    re.IGNORECASE,
)
"""A word that announces an account or a bank, and one short word after it: `account no. `."""
_WORD = re.compile(r"\w+")
_LABELED_NUMBER = re.compile(r"\d(?:-?\d){5,16}(?![\w-])")
_DAY = re.compile(r"(?:19|20)\d\d(-?)[01]\d\1[0-3]\d|[0-3]\d-[0-3]\d-(?:\d\d){1,2}")
_BASE_58_WORD = re.compile(r"\b[1-9A-HJ-NP-Za-km-z]{25,44}\b")
_LONG_WORD = re.compile(r"[A-Za-z0-9]{13}")
"""Every wallet contains such a word."""
_MANY_DIGITS = re.compile(r"\d{2}(?:[ .,/_-]{0,2}[A-Za-z0-9]){9}")
"""Every IBAN and card number contains such a sequence."""
_SEPARATORS = re.compile(r"[ .,/_-]")
_BASE_58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_RIPPLE_BASE_58 = "rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz"
_BECH32_LETTERS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32_STEPS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32_SUMS = (1, 0x2BC830A3)
SHORTEST_IBAN, LONGEST_IBAN = 15, 34
CHECKSUM_BYTES, WALLET_BYTES, KEY_BYTES = 4, 25, 32


def find_accounts(text: str) -> Iterator[str]:
    """Yield the text's account numbers without separators; some are repeated."""
    if ".eth" in text:
        yield from (found[0] for found in _ENS_NAME.finditer(text))
    if _LONG_WORD.search(text):
        yield from _find_wallets(text)
    yield from _find_labeled(text)
    if not _MANY_DIGITS.search(text):
        return
    yield from (
        _join(found)
        for found in _IBAN.findall(text)
        if sum(map(str.isdigit, found)) >= FEWEST_DIGITS
    )
    for found in _IBAN_IN_ANY_FORM.finditer(text):
        if account := _find_iban(found[0]):
            yield account
    for found in _CARD.finditer(text):
        digits = _join(found[0])
        if _has_luhn_checksum(digits):
            yield digits


def is_bank_code(text: str) -> bool:
    """Return True if the text has the form of a bank's code (BIC)."""
    found = _BANK_CODE.fullmatch(text)
    return found is not None and found[1].lower() in ENDINGS


def is_card_number(text: str) -> bool:
    """Return True if the text has the form of a card number, even with a wrong check digit."""
    return _CARD.fullmatch(text) is not None


def _find_labeled(text: str) -> Iterator[str]:
    """Yield the numbers and bank codes directly after a word that announces them."""
    for label in _LABEL.finditer(text):
        word = label[1].lower()
        number = _LABELED_NUMBER.match(text, label.end())
        if number and (word.startswith("sort") or not _DAY.fullmatch(number[0])):
            yield number[0]
        elif word in ("bic", "swift"):
            code = _WORD.match(text, label.end())
            if code and is_bank_code(code[0]):
                yield code[0]


def _find_wallets(text: str) -> Iterator[str]:
    yield from (found[0] for found in _WALLET.finditer(text))
    yield from (found[0] for found in _INVOICE.finditer(text))
    for found in _BECH32.finditer(text if text.islower() else text.lower()):
        if _has_bech32_checksum(found[1], found[2]):
            yield text[found.start() : found.end()]
    yield from (found[0] for found in _BASE_58_WORD.finditer(text) if _is_base58_wallet(found[0]))


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


def _is_base58_wallet(word: str) -> bool:
    """Return True for addresses with a checksum, such as Bitcoin's, Tron's and Ripple's, and
    for words that encode as many bytes as a public key, such as Solana's."""
    if _has_base58_checksum(word, _BASE_58):
        return True
    if word[0] == "r" and _has_base58_checksum(word, _RIPPLE_BASE_58):
        return True
    has_all = word.upper() != word != word.lower() and any(map(str.isdigit, word))
    return has_all and _measure_base58(word) == KEY_BYTES


def _measure_base58(word: str) -> int:
    """Return the number of bytes that the word encodes; each leading 1 is a zero byte."""
    value = _read_base58(word, _BASE_58)
    return (value.bit_length() + 7) // 8 + len(word) - len(word.lstrip("1"))


def _read_base58(word: str, alphabet: str) -> int:
    number = 0
    for char in word:
        number = number * 58 + alphabet.index(char)
    return number


def _has_base58_checksum(address: str, alphabet: str) -> bool:
    number = _read_base58(address, alphabet)
    if number.bit_length() > WALLET_BYTES * 8:
        return False
    raw = number.to_bytes(WALLET_BYTES, "big")
    checksum = hashlib.sha256(hashlib.sha256(raw[:-CHECKSUM_BYTES]).digest()).digest()
    return raw[-CHECKSUM_BYTES:] == checksum[:CHECKSUM_BYTES]


def _has_bech32_checksum(prefix: str, data: str) -> bool:
    """Return True for addresses like Bitcoin's, Cosmos' and Cardano's (BIP 173 and BIP 350)."""
    values = [ord(char) >> 5 for char in prefix] + [0] + [ord(char) & 31 for char in prefix]
    total = 1
    for value in (*values, *map(_BECH32_LETTERS.index, data)):
        top = total >> 25
        total = (total & 0x1FFFFFF) << 5 ^ value
        for place, step in enumerate(_BECH32_STEPS):
            total ^= step if top >> place & 1 else 0
    return total in _BECH32_SUMS
