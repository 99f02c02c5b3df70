"""The description of an event in words, for the panel, the playback, the transcript and
webhooks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.runs.event_facts import EventFact


@dataclass(frozen=True)
class Description:
    """An event prepared for display, from its payload alone.

    Attributes:
        words: what happened, without the texts in the other fields.
        brief: a shorter form of `words`, if they are long.
        spoken: the text for a screen reader, which follows the title of a call; empty if there is
            none, or if it depends on the call's row.
        look: `good`, `bad`, `wait`, `pass`, another look of a run's status, or empty.
        by: the name of the person who acted; empty for Gadget.
        text, markdown: a text by a person, the employee or a tool, plain or as Markdown.
        is_shortened: True if the event lacks the end of such a text, or the data of the result.
        details: further facts for small print, such as the usage or failed attempts.
        code: the code of an error.
        sentence: a card's sentence, with its bold parts.
        values: the inputs of a call by name.
        data: the data of a result.
        call_id, title, level: the call that the event is about, the title of its tool, and its
            level.
        card_id, next_card_id: the card that the event is about, and the one that replaced it.
        pass_number: the pass that begins.
        until: the time of the next attempt.
        fraction: the progress of the call, from 0 to 1.
        is_outcome: True if the event ended the call; the words are then the call's outcome.
        repeated_by: the ids of later calls with the same request.
        heading, reason, result_name: for the end of a run: the title of its result, the reason if
            it was neither answered nor cancelled, and `answer` or `result`.
        facts: the facts for other systems, without redaction.
    """

    words: str
    brief: str = ""
    spoken: str = ""
    icon: str = "circle-alert"
    look: str = ""
    by: str = ""
    text: str = ""
    markdown: str = ""
    is_shortened: bool = False
    details: str = ""
    code: str = ""
    sentence: str = ""
    values: dict[str, Any] | None = None
    data: Any = None
    call_id: str = ""
    title: str = ""
    level: str = ""
    card_id: str = ""
    next_card_id: str = ""
    pass_number: int = 0
    until: datetime | None = None
    fraction: float | None = None
    is_outcome: bool = False
    repeated_by: tuple[str, ...] = ()
    heading: str = ""
    reason: str = ""
    result_name: str = ""
    facts: tuple[EventFact, ...] = ()

    @property
    def short(self) -> str:
        """The brief form if there is one, else the words."""
        return self.brief or self.words
