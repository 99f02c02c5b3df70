"""The ECMA regular expressions of schemas, matched by RE2 in linear time."""

import re
from functools import lru_cache
from typing import Any

import re2


@lru_cache(maxsize=1024)
def compile_linear_pattern(pattern: str) -> Any:
    """Compile a regular expression that matches in linear time; None if RE2 does not support it."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(translate_pattern(pattern), options)
    except (re2.error, UnicodeError):
        return None


_ECMA_ESCAPES = re.compile(
    r"\\\\|\\u\{(?P<braced>[0-9A-Fa-f]{1,6})\}|\\u(?P<plain>[0-9A-Fa-f]{4})|\\c(?P<control>[A-Za-z])"
    r"|(?P<property>\\[pP])\{(?P<key>[A-Za-z_]+=)?(?P<value>[A-Za-z_0-9]+)\}|(?P<any>\[\^\])|(?P<back>\[\\b\])"
    r"|\\(?P<other>[^\x00-\x7f])"
)
_CATEGORIES = {
    "Letter": "L",
    "Mark": "M",
    "Number": "N",
    "Punctuation": "P",
    "Symbol": "S",
    "Separator": "Z",
    "Other": "C",
    "Uppercase_Letter": "Lu",
    "Lowercase_Letter": "Ll",
    "Titlecase_Letter": "Lt",
    "Decimal_Number": "Nd",
    "Modifier_Letter": "Lm",
    "Other_Letter": "Lo",
    "Nonspacing_Mark": "Mn",
    "Space_Separator": "Zs",
}


def translate_pattern(pattern: str) -> str:
    """Translate an ECMA pattern, as in JSON Schema, into RE2's syntax where the two syntaxes
    differ."""
    return _ECMA_ESCAPES.sub(_translate_escape, pattern)


def _translate_escape(found: re.Match[str]) -> str:
    if number := found["braced"] or found["plain"]:
        return f"\\x{{{number}}}"
    if found["control"]:
        return f"\\x{ord(found['control']) % 32:02x}"
    if found["property"]:
        return f"{found['property']}{{{_CATEGORIES.get(found['value'], found['value'])}}}"
    if found["any"] or found["back"]:
        return r"[\s\S]" if found["any"] else r"\x08"
    return found["other"] or found[0]
