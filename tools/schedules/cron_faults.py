"""Faults of cron expressions, in words: the faulty field, its value, and the allowed values."""

from dataclasses import dataclass

from cronsim import CronSimError
from cronsim.cronsim import Field

LONGEST_SHOWN = 40


@dataclass(frozen=True)
class CronField:
    """One of the five fields of a cron expression, with its allowed values and an example."""

    field: Field
    name: str
    allowed: str
    example: str


CRON_FIELDS = (
    CronField(Field.MINUTE, "minute", "0 to 59", "0 or */15"),
    CronField(Field.HOUR, "hour", "0 to 23", "9 or 8-17"),
    CronField(
        Field.DAY,
        "day of the month",
        "1 to 31, L for the last day or LW for the last weekday",
        "1 or 1,15",
    ),
    CronField(Field.MONTH, "month", "1 to 12 or JAN to DEC", "1 or JAN-MAR"),
    CronField(
        Field.DOW,
        "day of the week",
        "0 to 7 or SUN to SAT, with #2 for the second and L for the last",
        "MON-FRI or 5L",
    ),
)


def find_cron_fault(fields: list[str]) -> str | None:
    """Describe the first invalid field of a cron expression; None if all five are valid."""
    for part, text in zip(CRON_FIELDS, fields, strict=True):
        if not _is_valid(part.field, text):
            forms = "as a single value, list, ascending range or step, or * for all"
            fault = (
                f"the {part.name} is {text[:LONGEST_SHOWN]!r}. Allowed: {part.allowed}, {forms}."
            )
            return f"{fault} For example: {part.example}"
    return None


def _is_valid(field: Field, text: str) -> bool:
    try:
        field.parse(text.upper())
    except CronSimError:
        return False
    return text.isascii()
