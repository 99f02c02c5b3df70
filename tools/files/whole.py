"""All organizations' folders together: lists their entries, and holds a moment in which none changes."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from django.conf import settings

from .changing import changing
from .folder import Entry, tree_of


def organizations_with_files() -> list[int]:
    """Return the ids of the organizations that have a folder, sorted."""
    top = Path(settings.GADGET_FILES_DIR)
    if not top.exists():
        return []
    return sorted(int(one.name) for one in top.iterdir() if one.name.isascii() and one.name.isdecimal())


def all_entries() -> Iterator[tuple[int, Entry]]:
    """Yield every file and folder of every organization."""
    for organization_id in organizations_with_files():
        for entry in tree_of(organization_id).entries:
            yield organization_id, entry


@contextmanager
def nothing_changes() -> Iterator[None]:
    """Block writing and deleting on all machines; a writer waits a few seconds before it gives up.

    Raises:
        ToolError: OPERATION_FAILED, somebody else has held a folder for too long.
    """
    with ExitStack() as locks:
        held: set[int] = set()
        while missing := [one for one in organizations_with_files() if one not in held]:
            for organization_id in missing:
                locks.enter_context(changing(organization_id))
            held.update(missing)
        yield
