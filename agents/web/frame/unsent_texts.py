"""The texts of a form that was sent after the session had ended: they are kept during the login,
and restored on the next page.

The login page has the texts in its form, so that the server does not store texts from strangers.
After the login, the session holds the texts until the next page.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from django.http import HttpRequest, QueryDict

FIELD = "unsent"
"""The name of the login page's input and of the session's key for the texts."""
MAX_LENGTH = 64 * 1024
NOT_TYPED = re.compile(
    r"password|secret|token|(?:^|[_.])key|^(?:auth|p256dh|endpoint|code|next|digest|decision_id|confirm|preset|query"
    r"|despite_claim_of|seen_approvals|organization|theme)$",
    re.IGNORECASE,
)
"""Matches the names of inputs that people do not type in, or whose texts must not be kept."""


@dataclass(frozen=True)
class UnsentTexts:
    """The texts of one form, by input name, and the path of the address that it was sent to."""

    path: str
    texts: tuple[tuple[str, str], ...]

    def to_json(self) -> str:
        """Return the texts as JSON, for the login page and the session."""
        return json.dumps({"path": self.path, "texts": self.texts})


def read_unsent(path: str, form: QueryDict) -> UnsentTexts | None:
    """Read the typed texts of a form; None if there are none, or more than can be kept."""
    texts = tuple(
        (name, text) for name, text in form.items() if isinstance(text, str) and text.strip()
    )
    found = UnsentTexts(
        path, tuple((name, text) for name, text in texts if not NOT_TYPED.search(name))
    )
    return found if found.texts and len(found.to_json()) <= MAX_LENGTH else None


def parse_unsent(stored: object) -> UnsentTexts | None:
    """Parse the output of `to_json`; None for anything else."""
    if not isinstance(stored, str) or len(stored) > MAX_LENGTH:
        return None
    try:
        found = json.loads(stored)
        return UnsentTexts(
            str(found["path"]), tuple((str(name), str(text)) for name, text in found["texts"])
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def take_unsent(request: HttpRequest) -> UnsentTexts | None:
    """Take the texts out of the session; None if there are none, or if a script fetches only a part
    of a page."""
    is_page = request.headers.get("sec-fetch-mode", "navigate") == "navigate"
    return (
        parse_unsent(request.session.pop(FIELD)) if is_page and FIELD in request.session else None
    )
