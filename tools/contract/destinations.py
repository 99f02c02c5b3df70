"""Params that hold a recipient, destination or amount, where a wrong value does the most harm."""

import re
from collections.abc import Iterable

_NAMES = (
    "to cc bcc recipient recipients receiver receivers addressee payee beneficiary contact "
    "email emails mail mails phone phones mobile fax address addresses "
    "host hosts hostname domain domains url urls uri uris href link links endpoint webhook callback website site "
    "server proxy ip redirect destination destinations target targets channel channels "
    "account accounts iban bic swift wallet bank routing "
    "path paths file files filename filepath folder directory "
    "amount amounts price total sum cost fee fees quantity"
)
_DESTINATIONS = frozenset(_NAMES.split())
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def is_destination(path: Iterable[str], named: frozenset[str] = frozenset()) -> bool:
    """Return True if a param at this path holds a recipient, a destination or an amount.

    Args:
        path: the names from the outermost param to this one.
        named: further names of such params, from the tool's `destination_params`.
    """
    return any(name in named or not _DESTINATIONS.isdisjoint(_split_name(name)) for name in path)


def _split_name(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}
