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
    "punctuation twins in addresses": frozenset({"a question mark", "a fullwidth number sign"}),
    # An IPv6 address without brackets is no address.
    "addresses without a scheme": frozenset({"colons"}),
    # Letters with spaces between them are not joined.
    "addresses in words": frozenset({"with spaces"}),
    # Base64 is not decoded.
    "escapes in addresses": frozenset({"in Base64"}),
    # Invoices of Lightning and phone numbers in a text are not looked for.
    "handles and wallets": frozenset({"an invoice of Lightning", "a phone in a text"}),
    # Accounts of other forms than IBANs and cards are not looked for in a text.
    "account numbers in other spellings": frozenset({"a sort code", "a bank's code"}),
    # A card with a wrong last digit is no card.
    "account numbers with a slip": frozenset({"a card that is none"}),
    # Paths are not read.
    "paths that lead elsewhere": frozenset(
        {
            "upward",
            "upward in escapes",
            "upward with backslashes",
            "an ellipsis",
            "fullwidth dots",
            "somebody's home",
            "twice escaped",
            "upward through a long way",
        }
    ),
    # Schemes other than those of hosts are not read.
    "addresses that carry a program": frozenset(
        {"data", "a script", "a script in a link", "a scheme with tabs"}
    ),
    # Only one long value folds, not many short ones.
    "an odd value deep among many": frozenset({"a limit", "a switch"}),
    # Fewer than six targets are not compared.
    "an odd target among many": frozenset({"one of four deleted"}),
    # Only one long value folds, not the height of the card.
    "long words that push the rest away": frozenset(
        {
            "an amount",
            "a switch",
            "a path",
            "a command",
            "in one value",
            "in names of params",
            "eight lines each",
        }
    ),
    # Only fields of a preview say that they are emptied.
    "values emptied among many": frozenset(
        {"a list of addresses", "to null", "an object", "an entry to null"}
    ),
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
        {"public", "a key", "any origin", "a password", "no end"}
    ),
    # A sign of another width is not looked at.
    "units and currencies": frozenset({"a sign that looks like another"}),
    # Nothing says that a value stands for all.
    "patterns that widen": frozenset(
        {"all", "all of a list", "all folders", "any text", "any value in a query"}
    ),
    # A list that was new when the card was made is not looked at again.
    "targets that are no longer what they were": frozenset({"a list that now exists"}),
    # Names are compared by their look alone.
    "similar names": frozenset(
        {
            "a letter more",
            "a letter less",
            "two letters swapped",
            "another letter",
            "a legal form",
            "another ending",
            "an accent",
            "an article",
            "turned around",
            "a new record",
        }
    ),
    # Members are not compared.
    "similar people and addresses": frozenset({"a username"}),
    # They stand there without a quotation.
    "words of others in Gadget's places": frozenset(
        {"an action", "the key of an effect", "an audience", "a task", "another system's answer"}
    ),
    # Values have no look of their own, and phrases are English.
    "imitations in other languages": frozenset(
        {
            "German, as a name",
            "French, as a value",
            "Spanish, as a value",
            "Chinese, as a name",
            "Japanese, as a value",
            "Polish, as a value",
            "Hindi, as a name",
        }
    ),
    # Values have no look of their own, and phrases are English.
    "imitations in long texts and comparisons": frozenset(
        {"in the present value", "in a nested text", "as a heading", "with our bar"}
    ),
    # Values and names of fields have no look of their own.
    "names that seem to be our rows": frozenset(
        {
            "a target",
            "the id of a target",
            "a field",
            "a param",
            "a value that says it is absent",
            "a value that says there is more",
            "a token for hidden characters",
            "a value that says it is the same",
        }
    ),
    # A sentence quotes values with plain quotation marks.
    "quotes that close our sentence": frozenset(
        {"straight", "curly", "angular", "an arrow", "a bracket and an id", "stars", "corners"}
    ),
    # Its twin has the same mark: `MARKED_TWINS`.
    "marks of a text that is rendered": frozenset({"a link whose words are another address"}),
    # Values have no look of their own.
    "looks that only we may give": frozenset(
        {
            "bold",
            "HTML",
            "codes of a terminal",
            "an emoji for our sign",
            "a table",
            "letters of our own face",
        }
    ),
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
            "two endings",
            "a shortcut",
            "a page that seems a note",
            "a hidden settings file",
            "a period at the end",
            "a second stream",
        }
    ),
    # A dash is a value.
    "values emptied among many": frozenset({"to a dash"}),
    # Only the tool knows the range and the form of a figure.
    "amounts that read as others": frozenset(
        {
            "negative",
            "powers of ten",
            "another separator",
            "hexadecimal",
            "in brackets",
            "not a number",
            "a switch",
        }
    ),
    # Only the tool knows which word gives more.
    "rights widened among harmless fields": frozenset({"a role", "a second factor"}),
    # Only the tool knows which unit it takes.
    "units and currencies": frozenset(
        {
            "beside another currency",
            "one line in another",
            "a sign beside a code",
            "a unit in the name",
        }
    ),
    # Only the tool knows which day it takes.
    "dates and times": frozenset(
        {
            "the end before the start",
            "a day that is none",
            "a month or a day",
            "another zone",
            "seconds for milliseconds",
            "a far year",
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
            "through a pipe",
            "substituted",
            "in backticks",
            "on a second line",
            "into a file",
            "in Base64",
        }
    ),
    # Only the server knows how many rows a query changes.
    "queries without a limit": frozenset(
        {
            "a deletion",
            "an update",
            "a condition that always holds",
            "a condition in a comment",
            "two statements",
            "a table",
            "a quote that closes",
        }
    ),
    # Only people know how often is too often.
    "times that repeat too often": frozenset(
        {
            "each minute",
            "each minute by steps",
            "an hour of minutes",
            "a day that never comes",
            "at each start",
            "a day or a weekday",
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

UNMARKED: dict[str, frozenset[str]] = {
    "leave_open": frozenset(
        {
            "/",
            "/api/approvals",
            "/api/approvals/{approval_id}",
            "/api/runs/{run_id}",
            "/api/tool_calls/{call_id}",
            "/runs/<int:run_id>/calls/<int:call_id>/",
        }
    ),
    "close": frozenset(
        {
            "/api/approvals",
            "/api/approvals/{approval_id}",
            "/api/runs/{run_id}",
            "/api/tool_calls/{call_id}",
            "/runs/<int:run_id>/calls/<int:call_id>/",
            "/approvals/<int:approval_id>/",
            "/approvals/<int:approval_id>/card/",
        }
    ),
}
"""Surfaces that show a value without its mark, for a waiting card and for a denied one."""

APPROVED_IN_BULK: dict[str, frozenset[str]] = {
    "punctuation twins in addresses": frozenset({"a fullwidth at sign"}),
    "addresses without a scheme": frozenset(
        {"a deep ending", "a mail link", "a port", "an ending in Cyrillic"}
    ),
    "addresses in words": frozenset({"as entities", "in German", "with a letter in brackets"}),
    "escapes in addresses": frozenset({"of an at sign"}),
    "handles and wallets": frozenset(
        {"a Matrix user", "a Monero wallet", "a SegWit wallet", "a chat link"}
    ),
    "account numbers in other spellings": frozenset({"in small letters", "with dots"}),
    "account numbers with a slip": frozenset({"a digit less", "two digits swapped in a text"}),
    "values emptied among many": frozenset({"an email", "to a space"}),
    "similar people and addresses": frozenset({"a handle", "a hyphen"}),
    "marks of a text that is rendered": frozenset(
        {"a comment", "a part that folds", "a reference", "an anchor", "an image"}
    ),
}
"""Planted cards, by class, that are noticed when one opens them and are approved in bulk."""

OUT_OF_VIEW: frozenset[str] = frozenset()
"""Planted cards whose mark is in the page and not in view at first sight."""
