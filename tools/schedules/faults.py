"""What is wrong with a cron expression, in words: which of its fields, what was written there, and what may be."""

from dataclasses import dataclass

from cronsim import CronSimError
from cronsim.cronsim import Field

LONGEST_SHOWN = 40


@dataclass(frozen=True)
class Part:
    """One of the five fields: what a person may write there, and an example that is not everything."""

    field: Field
    name: str
    allowed: str
    example: str


PARTS = (
    Part(Field.MINUTE, "minute", "0 to 59", "0 or */15"),
    Part(Field.HOUR, "hour", "0 to 23", "9 or 8-17"),
    Part(Field.DAY, "day of the month", "1 to 31, L for the last day or LW for the last weekday", "1 or 1,15"),
    Part(Field.MONTH, "month", "1 to 12 or JAN to DEC", "1 or JAN-MAR"),
    Part(
        Field.DOW, "day of the week", "0 to 7 or SUN to SAT, with #2 for the second and L for the last", "MON-FRI or 5L"
    ),
)


def fault_in(fields: list[str]) -> str:
    """Which of these five fields nothing can be made of, and why, as a sentence; empty if each of them is good."""
    for part, written in zip(PARTS, fields, strict=True):
        if not _is_good(part.field, written):
            ways = "also as a list, a range upwards or a step, or * for every one"
            said = f"the {part.name} is {written[:LONGEST_SHOWN]!r}. Allowed are {part.allowed}, {ways}."
            return f"{said} For example: {part.example}"
    return ""


def _is_good(field: Field, written: str) -> bool:
    try:
        field.parse(written.upper())
    except CronSimError:
        return False
    return written.isascii()
