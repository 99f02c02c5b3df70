"""A text column whose value is encrypted at rest."""

from functools import lru_cache
from typing import Any, Self

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models


class UndecryptableText(str):
    """A value that no key can decrypt. It reads as an empty text, and is saved again as the same
    ciphertext."""

    ciphertext: str

    def __new__(cls, ciphertext: str) -> Self:
        text = super().__new__(cls, "")
        text.ciphertext = ciphertext
        return text


@lru_cache(maxsize=4)
def _get_cipher(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


def _read_keys() -> tuple[str, ...]:
    return tuple(settings.GADGET_ENCRYPTION_KEYS)


class EncryptedTextField(models.TextField):  # type: ignore[type-arg]
    """A text field whose value is encrypted with the first of `GADGET_ENCRYPTION_KEYS`; any of
    these keys can decrypt it.

    An empty text stays empty.

    A value that no key can decrypt is read as `UndecryptableText`. The ciphertext is not bound to
    its row: a person who can write to the database could copy it into another row.
    """

    def get_prep_value(self, value: Any) -> Any:
        if isinstance(value, UndecryptableText):
            return value.ciphertext
        return _get_cipher(_read_keys()).encrypt(str(value).encode()).decode() if value else ""

    def from_db_value(self, value: str | None, *_: object) -> str:
        if not value:
            return ""
        try:
            return _get_cipher(_read_keys()).decrypt(value.encode()).decode()
        except InvalidToken:
            return UndecryptableText(value)


def has_current_key(ciphertext: str) -> bool:
    """Return True if the value was encrypted with the first of `GADGET_ENCRYPTION_KEYS`."""
    try:
        _get_cipher(_read_keys()[:1]).decrypt(ciphertext.encode())
    except InvalidToken:
        return False
    return True


def reencrypt(ciphertext: str) -> str | None:
    """Return the same value encrypted with the first of `GADGET_ENCRYPTION_KEYS`; None if no key
    can decrypt it."""
    try:
        return _get_cipher(_read_keys()).rotate(ciphertext.encode()).decode()
    except InvalidToken:
        return None
