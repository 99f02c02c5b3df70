"""The last lines that `restore` and `after_restore` print."""

from collections.abc import Iterator, Mapping


def describe_restore(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield the counts, and the next steps for a person."""
    for name, count in counts.items():
        yield f"{name.replace('_', ' ')}: {count}"
    yield "All sessions, tokens, keys, links, standing grants and deputies have ended. Log in again and renew them."
    yield "Schedules are paused, and triggers and webhooks are off, until a person switches each one on again."
    yield "People, roles, rules and budgets are as they were: an admin must confirm each line at /stop/restored/."
    yield "Open cards carry a warning: they may have been decided and carried out since the backup."
    yield "EVERYTHING IS STOPPED. Start Gadget and review open cards and limits. Then an admin can lift the stop."
