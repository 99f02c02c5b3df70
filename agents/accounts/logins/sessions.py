"""Delete browser sessions that have expired."""

from __future__ import annotations

from django.contrib.sessions.models import Session
from django.utils import timezone

BATCHES = 20


def forget_expired_sessions(at_once: int = 1_000) -> int:
    """Delete sessions that have expired; return their number.

    Each batch is deleted in its own short transaction. If there are very many expired sessions, the
    remaining ones are left for the next call.
    """
    deleted = 0
    for _ in range(BATCHES):
        expired = Session.objects.filter(expire_date__lt=timezone.now()).order_by()
        found = list(expired.values_list("pk", flat=True)[:at_once])
        # Check the expiry again: a session may have been renewed since it was found.
        deleted += expired.filter(pk__in=found).delete()[0]
        if len(found) < at_once:
            break
    return deleted
