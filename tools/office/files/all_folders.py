"""The folders of all organizations: listing their entries, and blocking changes during a backup."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from django.conf import settings

from tools.office.files.changes import lock_folder
from tools.office.files.folder import list_tree
from tools.registries.files import FolderEntry


def list_organizations_with_files() -> list[int]:
    """Return the ids of the organizations that have a folder, sorted."""
    top = Path(settings.GADGET_FILES_DIR)
    if not top.exists():
        return []
    return sorted(
        int(folder.name)
        for folder in top.iterdir()
        if folder.name.isascii() and folder.name.isdecimal()
    )


def list_all_entries() -> Iterator[tuple[int, FolderEntry]]:
    """Yield every file and folder of every organization."""
    for organization_id in list_organizations_with_files():
        for entry in list_tree(organization_id).entries:
            yield organization_id, entry


@contextmanager
def blocking_changes() -> Iterator[None]:
    """Block writing and deleting on all machines; a writer waits a few seconds before it gives up.

    Raises:
        ToolError: OPERATION_FAILED, another process kept a folder locked for too long.
    """
    with ExitStack() as locks:
        locked: set[int] = set()
        while missing := [each for each in list_organizations_with_files() if each not in locked]:
            for organization_id in missing:
                locks.enter_context(lock_folder(organization_id))
            locked.update(missing)
        yield
