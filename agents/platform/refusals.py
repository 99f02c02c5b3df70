"""Refusals: exceptions that pages and REST turn into an HTTP status and a stable code."""

from typing import Any


class Refusal(Exception):
    """The base class of refusals. The response contains `extra` in addition to `code` and
    `detail`."""

    status = 400
    code = "refused"

    def __init__(self, detail: str, **extra: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.extra = extra


class NotFound(Refusal):
    """The object does not exist, or belongs to another organization."""

    status, code = 404, "not_found"


class Forbidden(Refusal):
    """The member may not perform this action."""

    status, code = 403, "forbidden"


class Conflict(Refusal):
    """The object's current state does not allow this action."""

    status, code = 409, "conflict"


class AlreadyDecided(Conflict):
    """The card was decided before; `extra` has decided_by, decided_at and approval_status."""

    code = "decided"


class Claimed(Conflict):
    """Another person has claimed the card; `extra` has claimed_by."""

    code = "claimed"


class ApprovalsChanged(Conflict):
    """Since the card was shown, other people have approved it or withdrawn their approval; `extra`
    has approved_by and needs."""

    code = "approvals_changed"


class MarksNotSeen(Conflict):
    """The card has marks that the approval does not name as seen; `extra` has these marks."""

    code = "marks_not_seen"


class Expired(Refusal):
    """The card has expired."""

    status, code = 410, "expired"


class TooManyRequests(Refusal):
    """Too many requests in a minute; `extra` has retry_after, in seconds."""

    status, code = 429, "too_many_requests"


class StaleDigest(Refusal):
    """The digest belongs to an earlier state of the card."""

    status, code = 412, "stale_digest"


class Invalid(Refusal):
    """A field is invalid. `extra` has the field's name, and the text gives the reason."""

    status, code = 422, "invalid"

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(detail, field=field)


class Unavailable(Refusal):
    """The database cannot do what was requested now."""

    status, code = 503, "database_away"


class NotMigrated(Unavailable):
    """The database lacks tables or columns that this version uses."""

    code = "not_migrated"
