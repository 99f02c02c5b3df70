"""The last lines that `restore` and `after_restore` print."""

from collections.abc import Iterator, Mapping


def describe_restore(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield the counts, and the next steps for a person."""
    for name, count in counts.items():
        yield f"{name.replace('_', ' ')}: {count}"
    yield "All sessions, API tokens and open links have ended. Log in again and create new tokens."
    yield "People who were removed since the backup are back, with their old passwords and roles: check the users."
    yield "Open cards carry a warning: they may have been decided and carried out since the backup."
    yield "EVERYTHING IS STOPPED. Start Gadget, review the open cards, and have an admin lift the stop at /stop/."
