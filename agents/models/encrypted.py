"""A text column whose value is encrypted at rest."""

from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models


@lru_cache(maxsize=4)
def _cipher(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


class EncryptedTextField(models.TextField):  # type: ignore[type-arg]
    """Encrypts with the first of `GADGET_ENCRYPTION_KEYS` and reads with any of them; empty stays empty.

    Raises:
        ValueError: the stored value was made with a key that is no longer there.
    """

    def get_prep_value(self, value: Any) -> Any:
        if not value:
            return ""
        return _cipher(tuple(settings.GADGET_ENCRYPTION_KEYS)).encrypt(str(value).encode()).decode()

    def from_db_value(self, value: str | None, *_: object) -> str:
        if not value:
            return ""
        try:
            return _cipher(tuple(settings.GADGET_ENCRYPTION_KEYS)).decrypt(value.encode()).decode()
        except InvalidToken as error:
            raise ValueError(f"{self.name}: none of GADGET_ENCRYPTION_KEYS can read the stored value") from error
