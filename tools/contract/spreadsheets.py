"""Cells of CSV files for spreadsheets, guarded so that no spreadsheet runs a cell as a formula."""

BYTE_ORDER_MARK = "\ufeff"
"""The first character of a CSV file, which makes spreadsheets read it as UTF-8."""
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 (spreadsheets accept these too)


def is_formula(text: str) -> bool:
    """Return True if a spreadsheet would run the text, or if it is a guarded formula."""
    return text.lstrip("' ").startswith(FORMULA_STARTS)


def guard_cell(text: str) -> str:
    """Prefix a formula so that no spreadsheet runs it; `remove_guard` reverts this."""
    return f"'{text}" if is_formula(text) else text


def remove_guard(cell: str) -> str:
    """Remove the apostrophe that keeps a spreadsheet from reading the cell as a formula."""
    text = cell.strip()
    return text[1:] if text.startswith("'") and is_formula(text) else text
