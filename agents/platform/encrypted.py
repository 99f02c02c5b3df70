"""A text column whose value is encrypted at rest."""

from functools import lru_cache
from typing import Any, Self

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models


class Unreadable(str):
    """Stands for a value that none of the keys can read: empty to whoever uses it, and stored again as it is."""

    sealed: str

    def __new__(cls, sealed: str) -> Self:
        made = super().__new__(cls, "")
        made.sealed = sealed
        return made


@lru_cache(maxsize=4)
def _cipher(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


def _keys() -> tuple[str, ...]:
    return tuple(settings.GADGET_ENCRYPTION_KEYS)


class EncryptedTextField(models.TextField):  # type: ignore[type-arg]
    """Encrypts with the first of `GADGET_ENCRYPTION_KEYS` and reads with any of them; empty stays empty.

    A value that was made with a key that is no longer there is read as `Unreadable`. What is stored does not name its
    row: whoever may write to the database could copy it into another one.
    """

    def get_prep_value(self, value: Any) -> Any:
        if isinstance(value, Unreadable):
            return value.sealed
        return _cipher(_keys()).encrypt(str(value).encode()).decode() if value else ""

    def from_db_value(self, value: str | None, *_: object) -> str:
        if not value:
            return ""
        try:
            return _cipher(_keys()).decrypt(value.encode()).decode()
        except InvalidToken:
            return Unreadable(value)


def is_current(sealed: str) -> bool:
    """True if the stored value was made with the first of the keys."""
    try:
        _cipher(_keys()[:1]).decrypt(sealed.encode())
    except InvalidToken:
        return False
    return True


def sealed_anew(sealed: str) -> str | None:
    """The same value under the first of the keys; None if none of them can read it."""
    try:
        return _cipher(_keys()).rotate(sealed.encode()).decode()
    except InvalidToken:
        return None
