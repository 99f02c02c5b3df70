"""Names of params that say to whom, where or how much, in English.

A known name only adds: it tells what a param names before any value is known. Params with other
names, in any language, are judged by `param_naming`.
"""

import re
from enum import StrEnum

from tools.caches import cache_by_text


class NamedThing(StrEnum):
    """The thing that a param names."""

    RECIPIENT = "recipient"
    DESTINATION = "destination"
    ACCOUNT = "account"
    RIGHT = "right"
    AMOUNT = "amount"
    COMMAND = "command"
    UNKNOWN = "unknown"
    """It looks like an id or an address of something."""
    NOTHING = "nothing"


def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


HOST_WORDS = _split("host hostname domain website server site")
FILE_WORDS = _split("path file filename folder")
RECIPIENT_WORDS = _split(
    "to cc bcc recipient recipients receiver receivers addressee payee beneficiary attendees"
)
"""Names of params whose plain texts are recipients."""
PERSON_WORDS = RECIPIENT_WORDS | _split(
    "assignee assignees owner owners user users username member members author reviewer reviewers "
    "approver approvers manager participant participants invitee invitees person people"
)
"""Names of params whose plain texts are people."""
PHONE_WORDS = _split("phone phones mobile fax")
WORDS = {
    NamedThing.RECIPIENT: RECIPIENT_WORDS | PHONE_WORDS | _split("contact email emails mail mails"),
    NamedThing.ACCOUNT: _split("account accounts iban bic swift wallet bank routing sortcode"),
    NamedThing.DESTINATION: HOST_WORDS
    | FILE_WORDS
    | _split(
        "address addresses hosts domains url urls uri uris "
        "href link links endpoint webhook callback proxy ip redirect destination destinations target targets channel "
        "channels paths files filepath directory"
    ),
    NamedThing.AMOUNT: _split("amount amounts price total sum cost fee fees quantity"),
    NamedThing.RIGHT: _split("role roles permission permissions privilege privileges scope scopes"),
    NamedThing.COMMAND: _split("command commands script scripts sql"),
}
"""The words of a name that tell what the param names."""
LATER_WORDS = WORDS[NamedThing.RIGHT] | WORDS[NamedThing.COMMAND] | _split("attendees sortcode")
"""Words that did not count in the first recordings."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


@cache_by_text
def split_name(name: str) -> frozenset[str]:
    """Split a name into its words: `accountNumber` and `account_number` have the same."""
    return frozenset(word.lower() for word in _WORD.findall(name))


def find_named(name: str, without: frozenset[str] = frozenset()) -> NamedThing:
    """Find the thing that a param with this name names, if the name is known.

    Args:
        without: words that do not count.
    """
    words = split_name(name) - without
    return next((kind for kind, known in WORDS.items() if words & known), NamedThing.NOTHING)
