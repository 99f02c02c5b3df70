"""Scoring of records: eight criteria whose points add up to 100.

| criterion | points |
|---|---|
| status | active 25, pending 10 |
| email address known | 10 |
| domain known | 10 |
| email address matches the domain | 5 |
| telephone number known | 5 |
| qualification | qualified 15, not judged 5 |
| attribute `employees` | 250 or more 15, 50 or more 10, 10 or more 5 |
| attribute `annual_revenue` | 10 million or more 15, 1 million or more 10, 100,000 or more 5 |
"""

from dataclasses import dataclass
from typing import Any

from tools.office.records.models import Record

STATUS_POINTS = {"active": 25, "pending": 10, "inactive": 0}
QUALIFICATION_POINTS = {"qualified": 15, "": 5, "disqualified": 0}
EMPLOYEE_STEPS = ((250, 15), (50, 10), (10, 5))
REVENUE_STEPS = ((10_000_000, 15), (1_000_000, 10), (100_000, 5))


@dataclass(frozen=True)
class ScorePart:
    """The points that one criterion adds to the score."""

    points: int
    of: int
    text: str

    def as_json(self) -> dict[str, Any]:
        return {"points": self.points, "of": self.of, "text": self.text}


def compute_parts(record: Record) -> list[ScorePart]:
    """Compute the parts of a record's score, in the order of the table above."""
    same_domain = bool(record.domain) and record.email.lower().endswith(f"@{record.domain.lower()}")
    return [
        ScorePart(STATUS_POINTS[record.status], 25, f"status is {record.status}"),
        _score_presence(record.email, 10, "email address"),
        _score_presence(record.domain, 10, "domain"),
        ScorePart(
            5 if same_domain else 0,
            5,
            f"email address {'matches' if same_domain else 'does not match'} the domain",
        ),
        _score_presence(record.phone, 5, "telephone number"),
        ScorePart(
            QUALIFICATION_POINTS[record.qualification], 15, record.qualification or "not judged yet"
        ),
        _score_number(record.attributes.get("employees"), EMPLOYEE_STEPS, "employees"),
        _score_number(record.attributes.get("annual_revenue"), REVENUE_STEPS, "annual revenue"),
    ]


def score_record(record: Record) -> dict[str, Any]:
    """Compute the score: {id, name, score, stored_score, reasons: [{points, of, text}]}."""
    reasons = compute_parts(record)
    return {
        "id": str(record.pk),
        "name": record.name,
        "score": sum(reason.points for reason in reasons),
        "stored_score": record.score,
        "reasons": [reason.as_json() for reason in reasons],
    }


def _score_presence(value: str, points: int, what: str) -> ScorePart:
    return ScorePart(points if value else 0, points, f"{what} {'known' if value else 'missing'}")


def _score_number(value: Any, steps: tuple[tuple[int, int], ...], what: str) -> ScorePart:
    most = steps[0][1]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ScorePart(0, most, f"{what} unknown")
    points = next((points for least, points in steps if value >= least), 0)
    return ScorePart(points, most, f"{value:,} {what}")
