"""Keep the text that models are writing in Redis, so that a page that is opened late shows the text
from its beginning.

The text may be lost; the recorded message of the pass replaces it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import redis
from django.conf import settings

KEPT_S = 900
"""The number of seconds for which a text is kept after its last piece: longer than any wait for a
model."""
MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class StreamedText:
    """The text of one pass so far. A text with a later `epoch` replaces an earlier one."""

    epoch: int
    pass_number: int
    text: str

    @property
    def key(self) -> tuple[int, int]:
        """The sort key of texts: first by driver, then by pass."""
        return self.epoch, self.pass_number


def _build_key(run_id: int) -> str:
    return f"{settings.GADGET_QUEUE}:text:{run_id}"


def keep_text(client: redis.Redis, run_id: int, piece: StreamedText, is_first: bool) -> None:
    """Append a piece to the run's text. The first piece of a stream replaces the text of an earlier
    stream."""
    key = _build_key(run_id)
    with client.pipeline(transaction=False) as pipe:
        if is_first:
            pipe.set(key, f"{piece.epoch}:{piece.pass_number}\n{piece.text}", ex=KEPT_S)
        else:
            pipe.append(key, piece.text)
            pipe.expire(key, KEPT_S)
        pipe.execute()


def read_text(client: redis.Redis, run_id: int) -> StreamedText | None:
    """Return the run's text so far; None if there is no text, or if its beginning was lost."""
    kept = cast("bytes", client.getrange(_build_key(run_id), 0, MAX_BYTES))
    head, line_break, text = kept.decode("utf-8", "replace").partition("\n")
    epoch, _, number = head.partition(":")
    if not line_break or not epoch.isdigit() or not number.isdigit():
        return None
    return StreamedText(int(epoch), int(number), text)
