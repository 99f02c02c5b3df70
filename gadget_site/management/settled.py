"""The lines with which `restore` and `after_restore` end."""

from collections.abc import Iterator, Mapping


def settled_lines(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield the figures, and what a person has to do next."""
    for name, count in counts.items():
        yield f"{name.replace('_', ' ')}: {count}"
    yield "All sessions, API tokens and open links have ended. Log in again and create new tokens."
    yield "People who were removed since the backup are back, with their old passwords and roles: check the users."
    yield "Open cards carry a warning: they may have been decided and carried out since the backup."
    yield "EVERYTHING IS STOPPED. Start Gadget, review the open cards, and have an admin lift the stop at /stop/."
