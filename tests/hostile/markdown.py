"""Hostile Markdown: texts designed to render slowly, or into far more HTML than text."""

from __future__ import annotations

import random
from collections.abc import Iterator

LENGTH = 20_000

PIECES = (
    *(
        "[",
        "]",
        "(",
        ")",
        "![",
        "](",
        "][",
        "[a](",
        "[a][b]",
        "[a]: /x",
        "[a]",
        "<",
        ">",
        "<a ",
        "<http://a>",
        "<a@b.c>",
    ),
    *(
        "*",
        "**",
        "***",
        "_",
        "__",
        "~~",
        "*a",
        "a*",
        "**a",
        "a**",
        "*_",
        "~",
        "`",
        "``",
        "```",
        "~~~",
        "\\",
        "\\*",
        "\\[",
    ),
    *(
        "|",
        "|a",
        "a|",
        "|-",
        "|:-:|",
        "\n|-|-|\n",
        "\n|",
        "---",
        "===",
        "\n-",
        "\n- ",
        "\n* ",
        "\n1. ",
        "\n+ ",
        "\n> ",
    ),
    *(
        ">",
        "> ",
        "- ",
        "1. ",
        "    ",
        "\t",
        "\n    ",
        "\n\n",
        "\n",
        " ",
        "  \n",
        "# ",
        "\n###### a",
        "\na\n=",
        "\na\n-",
    ),
    *(
        "&amp;",
        "&#x202e;",
        "&#0;",
        "&",
        "&lt;",
        '"',
        "'",
        "\x01",
        "\u202e",
        "\u200b",
        "\U000e0041",
        "\u0430",
        "p\u0430ypal.com",
    ),
    *(
        "a",
        "word ",
        "https://a.example/",
        "xn--80ak6aa92e.com",
        "\u6f22",
        "😀",
        "e\u0301",
        "(((",
        "<!--",
        "<![CDATA[",
        "<?",
    ),
)

SHAPES = (
    "|" + "a|" * 500 + "\n|" + "-|" * 500 + "\n" + "|\n" * 9_000,
    "[a]: https://a.example/" + "x" * 9_000 + "\n\n" + "[a]" * 3_000,
    '[a]: /x "' + "&quot;" * 1_500 + '"\n\n' + "[a] " * 2_500,
    ">" * LENGTH,
    "> " * 50 + "a\n",
    "- " * 10_000,
    "* * 1. > " * 2_000,
    "".join("  " * depth + "- a\n" for depth in range(140)),
    "".join("`" * length + " " for length in range(1, 200)),
    "a_" * 10_000,
    "*a_ " * 5_000,
    "*a**b" * 4_000,
    "[" * LENGTH,
    "![[]()" * 3_000,
    "[a](" * 5_000,
    "[](" + "(" * LENGTH,
    "[a](<" * 4_000,
    "<" * LENGTH,
    "\x01" * LENGTH,
    "\U000e0041" * LENGTH,
    '"&<>' * 5_000,
    "p\u0430ypal.com " * 1_600,
    "a|b\n-|-\n" * 2_500,
    "|a|\n|-|\n" + "|" + "b|" * 9_900,
    "# a\n" * 5_000,
    "a\n\n" * 7_000,
    "a\n=\n" * 5_000,
    "1. a\n\n" * 3_000,
    "```\n" * 5_000,
    "[a]: /x\n" * 2_500,
    "a  \n" * 5_000,
    "\\\n" * 10_000,
)


def hostile_texts(count: int, seed: int = 5) -> Iterator[str]:
    """Yield each shape once, then random mixtures of a few pieces, which are the same for the same
    seed."""
    dice = random.Random(seed)
    for shape in SHAPES[:count]:
        yield shape[:LENGTH]
    for _ in range(count - len(SHAPES)):
        yield _mixture(dice)[:LENGTH]


def _mixture(dice: random.Random) -> str:
    some = dice.choices(PIECES, k=dice.randint(1, 6))
    if dice.random() < 0.5:
        unit = "".join(some)
        return unit * (LENGTH // len(unit) + 1)
    jumbled = dice.choices(some, k=LENGTH // max(sum(map(len, some)) // len(some), 1) + 1)
    return "".join(jumbled)
