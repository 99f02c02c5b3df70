"""What a door answers when a request cannot be done: each with its HTTP status and a stable code."""

from typing import Any


class Refusal(Exception):
    """Base of all; `extra` goes into the answer beside `code` and `detail`."""

    status = 400
    code = "refused"

    def __init__(self, detail: str, **extra: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.extra = extra


class NotFound(Refusal):
    """Not there, or another organisation's."""

    status, code = 404, "not_found"


class Forbidden(Refusal):
    """The role does not include it."""

    status, code = 403, "forbidden"


class Conflict(Refusal):
    """Not in this state."""

    status, code = 409, "conflict"


class Decided(Conflict):
    """Somebody decided before; `extra` has decided_by, decided_at, approval_status."""

    code = "decided"


class Expired(Refusal):
    """The card has expired."""

    status, code = 410, "expired"


class Stale(Refusal):
    """The digest is not that of the card as it is now."""

    status, code = 412, "stale_digest"


class Invalid(Refusal):
    """One field is wrong, and why."""

    status, code = 422, "invalid"

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(detail, field=field)


class Unavailable(Refusal):
    """The database cannot do this at the moment."""

    status, code = 503, "database_away"
