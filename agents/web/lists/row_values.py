"""SQL row values such as `(at, id) < (…, …)`, which an index with these columns reads as one
range."""

from __future__ import annotations

from django.db.models import BooleanField, F, Func, TextField, Value


def build_row(*parts: F | Value) -> Func:
    """Build a row value from columns or values."""
    return Func(*parts, template="(%(expressions)s)", output_field=TextField())


def compare_rows(left: Func, sign: str, right: Func) -> Func:
    """Build the comparison of two row values; `sign` is an operator such as `<`."""
    return Func(
        left,
        right,
        template="(%(expressions)s)",
        arg_joiner=f" {sign} ",
        output_field=BooleanField(),
    )
