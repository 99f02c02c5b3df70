"""The operations on files that the office registers."""

from contextlib import suppress

from tools.contract import ToolError
from tools.office.files import all_folders, changes
from tools.office.files.folder import list_folder, open_file, open_folder
from tools.office.files.paths import parse_file_path, parse_path
from tools.office.files.result_files import keep_result_files
from tools.registries.files import FileStore, Names


def is_folder(organization_id: int, names: Names) -> bool:
    """Return True if there is a folder at this path that can be listed; a link to a folder cannot
    be listed."""
    with suppress(ToolError), open_folder(organization_id, names):
        return True
    return False


FILES = FileStore(
    largest_file=changes.LARGEST_FILE,
    max_files=changes.MAX_FILES,
    parse_path=parse_path,
    parse_file_path=parse_file_path,
    is_folder=is_folder,
    list_folder=list_folder,
    open_file=open_file,
    write_file=changes.write_file,
    list_deletions=changes.list_deletions,
    delete_files=changes.delete_files,
    keep_result_files=keep_result_files,
    list_organizations=all_folders.list_organizations_with_files,
    list_all_entries=all_folders.list_all_entries,
    blocking_changes=all_folders.blocking_changes,
)
