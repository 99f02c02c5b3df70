"""Pairs whose planted card shows nothing yet, and pairs that no card can tell from its twin."""

from __future__ import annotations

NOT_YET: dict[str, frozenset[str]] = {
    # A word counts only if each letter has a twin and a Latin word is beside it.
    "a whole word in another script": frozenset({"Cyrillic in a name", "Greek beside figures"}),
    # Roman numerals of their own code count as letters.
    "digits of other scripts in new places": frozenset({"a Roman numeral in an amount"}),
    # A long s is not among the letters in disguise.
    "Latin twins": frozenset({"a long s"}),
    # Regional letters count as flags, in any number and order.
    "letters in boxes and under strokes": frozenset({"regional letters"}),
    # Fullwidth ends of a host are folded before the address is compared.
    "punctuation twins in addresses": frozenset({"a fullwidth number sign", "a question mark"}),
    # An IPv6 address without brackets is no address.
    "addresses without a scheme": frozenset({"colons"}),
    # Letters with spaces between them are not joined.
    "addresses in words": frozenset({"with spaces"}),
    # Base64 is not decoded.
    "escapes in addresses": frozenset({"in Base64"}),
    # Invoices of Lightning and phone numbers in a text are not looked for.
    "handles and wallets": frozenset({"a phone in a text", "an invoice of Lightning"}),
    # Accounts of other forms than IBANs and cards are not looked for in a text.
    "account numbers in other spellings": frozenset({"a bank's code", "a sort code"}),
    # A card with a wrong last digit is no card.
    "account numbers with a slip": frozenset({"a card that is none"}),
    # Paths are not read.
    "paths that lead elsewhere": frozenset(
        {
            "an ellipsis",
            "fullwidth dots",
            "somebody's home",
            "twice escaped",
            "upward",
            "upward in escapes",
            "upward through a long way",
            "upward with backslashes",
        }
    ),
    # Schemes other than those of hosts are not read.
    "addresses that carry a program": frozenset(
        {"a scheme with tabs", "a script", "a script in a link", "data"}
    ),
    # Fewer than six targets are not compared.
    "an odd target among many": frozenset({"one of four deleted"}),
    # Only one long value folds, not the height of the card.
    "long words that push the rest away": frozenset({"in one value"}),
    # Only fields of a preview say that they are emptied.
    "values emptied among many": frozenset({"an entry to null"}),
    # Letters and signs in figures are not looked at; null is a value like any.
    "amounts that read as others": frozenset(
        {"negative by another sign", "null", "the letter O", "the letter l"}
    ),
    # Names of params are not compared with each other.
    "params of one name in two places": frozenset(
        {"a recipient", "an amount", "with another sign"}
    ),
    # Nothing says that a value is a credential or widens a right.
    "rights widened among harmless fields": frozenset(
        {"a key", "a password", "any origin", "no end"}
    ),
    # A sign of another width is not looked at.
    "units and currencies": frozenset({"a sign that looks like another"}),
    # Nothing says that a value stands for all.
    "patterns that widen": frozenset(
        {"all", "all folders", "all of a list", "any text", "any value in a query"}
    ),
    # A list that was new when the card was made is not looked at again.
    "targets that are no longer what they were": frozenset({"a list that now exists"}),
    # Names are compared by their look alone.
    "similar names": frozenset({"an article", "another ending", "turned around"}),
    # Members are not compared.
    "similar people and addresses": frozenset({"a username"}),
    # They stand there without a quotation.
    "words of others in Gadget's places": frozenset({"an action"}),
    # Values and names of fields have no look of their own.
    "names that seem to be our rows": frozenset(
        {"a value that says it is absent", "the id of a target"}
    ),
    # Its twin has the same mark: `MARKED_TWINS`.
    "marks of a text that is rendered": frozenset({"a link whose words are another address"}),
}
"""Planted cards, by class, that a rule about structure could notice.

One that is noticed must leave this list: the test says so.
"""

OUT_OF_REACH: dict[str, frozenset[str]] = {
    # Words of other languages for a sign.
    "addresses in words": frozenset({"in Spanish"}),
    # A second ending is as ordinary as `report.v2.pdf`.
    "names of files": frozenset(
        {
            "a hidden settings file",
            "a page that seems a note",
            "a period at the end",
            "a second stream",
            "a shortcut",
            "two endings",
        }
    ),
    # A dash is a value.
    "values emptied among many": frozenset({"to a dash"}),
    # Only the tool knows the range and the form of a figure.
    "amounts that read as others": frozenset(
        {
            "a switch",
            "another separator",
            "hexadecimal",
            "in brackets",
            "negative",
            "not a number",
            "powers of ten",
        }
    ),
    # Only the tool knows which word gives more.
    "rights widened among harmless fields": frozenset({"a role", "a second factor"}),
    # Only the tool knows which unit it takes.
    "units and currencies": frozenset(
        {
            "a sign beside a code",
            "a unit in the name",
            "beside another currency",
            "one line in another",
        }
    ),
    # Only the tool knows which day it takes.
    "dates and times": frozenset(
        {
            "a day that is none",
            "a far year",
            "a month or a day",
            "another zone",
            "seconds for milliseconds",
            "the end before the start",
        }
    ),
    # Two spellings of one condition.
    "patterns that widen": frozenset(
        {"a condition that always holds", "an alternative that is empty"}
    ),
    # Two commands in a row are as ordinary as one.
    "commands in a row": frozenset(
        {
            "after a semicolon",
            "after an ampersand",
            "in Base64",
            "in backticks",
            "into a file",
            "on a second line",
            "substituted",
            "through a pipe",
        }
    ),
    # Only the server knows how many rows a query changes.
    "queries without a limit": frozenset(
        {
            "a condition in a comment",
            "a condition that always holds",
            "a deletion",
            "a quote that closes",
            "a table",
            "an update",
            "two statements",
        }
    ),
    # Only people know how often is too often.
    "times that repeat too often": frozenset(
        {
            "a day or a weekday",
            "a day that never comes",
            "an hour of minutes",
            "at each start",
            "each minute",
            "each minute by steps",
        }
    ),
}
"""Planted cards, by class, that show the deceiving value exactly and in full.

It deceives by its meaning alone, which needs knowledge of the tool or of the language.
"""

MARKED_TWINS: dict[str, frozenset[str]] = {
    "times that repeat too often": frozenset({"at each start"}),
    "marks of a text that is rendered": frozenset({"a link whose words are another address"}),
}
"""Honest cards, by class, that are marked wrongly."""

APPROVED_IN_BULK: dict[str, frozenset[str]] = {
    # An emptied value is a fact about the effect, not a mark.
    "values emptied among many": frozenset({"an email", "to a space"}),
}
"""Planted cards, by class, that are noticed when one opens them and are approved in bulk."""

OUT_OF_VIEW: dict[int, frozenset[str]] = {
    360: frozenset(),
    1_440: frozenset(),
}
"""Planted cards whose mark is in the page and not in view at first sight, by the page's width."""
