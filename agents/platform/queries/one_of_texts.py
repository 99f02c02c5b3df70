"""A condition that compares a column with thousands of texts in one param, which is cheaper to send
than one param for each text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import BooleanField, Func, TextField, Value

from tools.contract import canonical_json


class IsOneOfTexts(Func):
    """The condition `column IN (texts)`, for use in `filter`."""

    output_field = BooleanField()

    def __init__(self, column: str, texts: Sequence[str]) -> None:
        super().__init__(column, Value(canonical_json(list(texts)), output_field=TextField()))

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Read the texts with SQLite's functions."""
        context |= {
            "arg_joiner": " IN (SELECT value FROM json_each(",
            "template": "%(expressions)s))",
        }
        return self.as_sql(compiler, connection, **context)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Read the texts with PostgreSQL's functions."""
        context |= {
            "arg_joiner": " IN (SELECT jsonb_array_elements_text((",
            "template": "%(expressions)s)::jsonb))",
        }
        return self.as_sql(compiler, connection, **context)
