"""Decode external text. Only charsets that can be decoded in linear time are used, because the
sender chooses the charset."""

import codecs

CHARSETS = frozenset(
    [
        *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "ascii"),
        *(f"iso8859-{number}" for number in (*range(1, 12), *range(13, 17))),
        *(f"cp125{number}" for number in range(9)),
        *("cp866", "cp874", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "tis-620"),
        *("gbk", "gb2312", "gb18030", "hz", "big5", "big5hkscs"),
        *("euc_jp", "shift_jis", "cp932", "iso2022_jp", "euc_kr", "cp949"),
    ]
)
"""Charsets that browsers know, under Python's names. Decoding some other charsets, such as
punycode, takes quadratic time."""


def decode_text(content: bytes, charset: str | None) -> str:
    """Decode the content with the charset, or as UTF-8 if the charset is not in CHARSETS; invalid
    bytes become U+FFFD."""
    try:
        name = codecs.lookup(charset or "utf-8").name
    except (LookupError, ValueError):
        name = "utf-8"
    return content.decode(name if name in CHARSETS else "utf-8", "replace")
