"""The operations on business records and drafts that pages, cards, the admin and the demo use."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, Literal

from django.db.models import QuerySet

from tools.contract import Target
from tools.registries import Registry

LARGEST_IMPORT = 50_000_000
MAX_CHOICES = 200
"""The maximum number of lists, and of a field's values, that a page offers as choices."""

Choices = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class RecordListQuery:
    """Conditions of a list; empty conditions do not apply. Archived records are listed only if the
    status is `archived`."""

    text: str = ""
    region: str = ""
    category: str = ""
    status: str = ""
    list_id: int | None = None


@dataclass(frozen=True)
class SortOrder:
    """The order of a list; records with the same key are ordered by id."""

    by: str = "name"
    descending: bool = False

    @property
    def reversed(self) -> "SortOrder":
        return replace(self, descending=not self.descending)

    def __str__(self) -> str:
        return f"-{self.by}" if self.descending else self.by


@dataclass(frozen=True)
class RecordPage:
    """A page of records; `after` is the cursor of the next page, and empty on the last page."""

    records: Sequence[Any]
    after: str


class ImportRefusedError(Exception):
    """The file cannot be imported at all, and nothing was imported. The message is for the user."""


@dataclass(frozen=True)
class ImportReport:
    """The number of created records, and the skipped rows as (line, reason)."""

    imported: int = 0
    bad_rows: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True)
class CheckedRows:
    """The rows of a file with their lines: the fields of good rows, and the faults of bad rows."""

    good: list[tuple[int, dict[str, Any]]]
    bad: list[tuple[int, str]]


@dataclass(frozen=True)
class RecordLists:
    """Lists of records for people.

    Attributes:
        statuses: the statuses of a record with their labels.
        parse_sort: parses an order such as `name` or `-score`.
        filter_records: selects the records that meet all conditions, unordered.
        load_page: loads the page after the cursor.
        list_values_in_use: lists the values of a field in an organization's records.
        get_record_lists: lists an organization's named lists.
    """

    statuses: Choices
    parse_sort: Callable[[str], SortOrder]
    filter_records: Callable[[int, RecordListQuery], QuerySet[Any]]
    load_page: Callable[[QuerySet[Any], SortOrder, str], RecordPage]
    list_values_in_use: Callable[[int, Literal["region", "category"]], list[str]]
    get_record_lists: Callable[[int], Sequence[Any]]


@dataclass(frozen=True)
class RecordTransfer:
    """Import and export of records as CSV.

    Attributes:
        columns: the columns that an import reads.
        ignored_columns: further columns of an export, which an import ignores.
        max_rows: the maximum number of rows in one import.
        read_csv: reads and checks a file; raises ImportRefusedError.
        create_records: creates the good rows in an organization, in the name of an actor.
        format_header: the first line of an export.
        format_rows_after: formats the records after an id, and returns the last id; empty at the
            end.
    """

    columns: Sequence[str]
    ignored_columns: Sequence[str]
    max_rows: int
    read_csv: Callable[[BinaryIO], CheckedRows]
    create_records: Callable[[CheckedRows, int, str], ImportReport]
    format_header: Callable[[], str]
    format_rows_after: Callable[[QuerySet[Any], int], tuple[str, int]]


@dataclass(frozen=True)
class RecordStore:
    """The records and drafts of organizations.

    Attributes:
        get_records, get_changes, get_drafts: select the rows of one organization.
        draft_kinds: the kinds of drafts with their labels.
        find_faults: checks a record's fields and returns the name and the fault of each wrong one.
        create_record: creates a record with these fields, in the name of an actor, and returns its
            id.
        update_record: applies the target's new values; raises ToolError if the record has changed.
        add_demo_companies: adds the demo's missing companies and returns their number.
        tool_family: the family of the tools whose targets are records: the first part of their
            names.
        name_keys: the expressions of the keys by which similar names are found, by the fields of
            `NameKeys`; each has an index.
    """

    get_records: Callable[[int], QuerySet[Any]]
    get_changes: Callable[[int], QuerySet[Any]]
    get_drafts: Callable[[int], QuerySet[Any]]
    draft_kinds: Choices
    lists: RecordLists
    transfer: RecordTransfer
    find_faults: Callable[[Mapping[str, Any]], list[tuple[str, str]]]
    create_record: Callable[[int, Mapping[str, Any], str], int]
    update_record: Callable[[int, Target, str], None]
    add_demo_companies: Callable[[int], int]
    tool_family: str
    name_keys: Mapping[str, Any]


RECORD_STORE = Registry[RecordStore]("records")
