"""The amount of product Python, the length of its functions, and the number of its comments."""

from __future__ import annotations

import ast
import io
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
from pathlib import Path
from statistics import median, quantiles

from tests.house.table import Figure, Part
from tests.source_tree import ROOT, functions_in, length_of, product

COLUMNS = 100
PRAGMA = re.compile(r"#\s*(noqa|type: ignore|pragma|fmt:|ruff:)")
"""A comment that instructs a tool."""


def reformat(columns: int) -> list[str]:
    """Return the texts of all product files, formatted for this many columns in a temporary
    copy."""
    with tempfile.TemporaryDirectory() as folder:
        for module in product():
            copy = Path(folder) / module.place
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(module.text, encoding="utf-8")
        shutil.copy(ROOT / "pyproject.toml", folder)
        ruff = [
            sys.executable,
            "-m",
            "ruff",
            "format",
            "--quiet",
            "--no-cache",
            "--line-length",
            str(columns),
        ]
        subprocess.run([*ruff, folder], check=True)
        return [(Path(folder) / module.place).read_text(encoding="utf-8") for module in product()]


def count_lines(texts: list[str]) -> int:
    """Count the lines that are not blank."""
    return sum(bool(line.strip()) for text in texts for line in text.splitlines())


def list_lengths(texts: list[str]) -> list[int]:
    """List the lengths of all functions, including nested ones."""
    return sorted(
        length_of(function) for text in texts for _, function in functions_in(ast.parse(text), "")
    )


def describe_lengths(lengths: list[int]) -> str:
    """Return the median length, the length that 95 % of the functions do not exceed, and the
    maximum."""
    return f"{median(lengths):g} / {quantiles(lengths, n=20)[-1]:.0f} / {lengths[-1]}"


def count_comments(text: str) -> int:
    """Count the lines with a comment for people."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(
        token.type == tokenize.COMMENT and not PRAGMA.match(token.string) for token in tokens
    )


def count_docstring_lines(text: str) -> int:
    """Count the lines of strings that stand alone: docstrings, and the texts below constants."""
    strings = [
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    return sum((string.end_lineno or string.lineno) - string.lineno + 1 for string in strings)


def measure_sizes() -> Part:
    """Measure the product's files as written, and formatted for COLUMNS columns."""
    texts = [module.text for module in product()]
    narrow = reformat(COLUMNS)
    lines = count_lines(texts)
    comments, docstrings = sum(map(count_comments, texts)), sum(map(count_docstring_lines, texts))
    return Part(
        (
            Figure("product Python: files", f"{len(texts):,}"),
            Figure("product Python: lines that are not blank", f"{lines:,}"),
            Figure(
                f"product Python: the same at {COLUMNS} columns",
                f"{count_lines(narrow):,}",
                "a tenth fewer",
            ),
            Figure("functions: number", f"{len(list_lengths(texts)):,}"),
            Figure(
                "functions: median / 95 % / longest",
                describe_lengths(list_lengths(texts)),
                "6 / 20 / 57",
            ),
            Figure(
                f"functions: the same at {COLUMNS} columns", describe_lengths(list_lengths(narrow))
            ),
            Figure("comments in 100 lines", f"{100 * comments / lines:.1f}", "about 2"),
            Figure("lines of docstrings in 100 lines", f"{100 * docstrings / lines:.1f}"),
        )
    )
