"""Output schemas of the tools shipped with Gadget; they validate result data and appear in the
catalog."""

from typing import Any, Literal

from pydantic import BaseModel, Field


class RecordReference(BaseModel):
    """A record by id and name."""

    id: str
    name: str


class RecordRow(RecordReference):
    """A record in a list."""

    region: str
    category: str
    status: str
    score: int | None
    email: str
    domain: str
    phone: str
    qualification: str
    version: int
    updated_at: str = Field(description="ISO 8601 in UTC")


class FoundRecords(BaseModel):
    records: list[RecordRow]
    total: int = Field(description="All matches, including those beyond the limit")
    filters_applied: dict[str, Any]


class HistoryEntry(BaseModel):
    at: str
    actor: str
    version: int
    before: dict[str, Any]
    after: dict[str, Any]
    call_id: str
    run_id: str


class FullRecord(RecordRow):
    notes: str
    attributes: dict[str, Any]
    qualification_reason: str
    created_at: str
    archived_at: str | None
    lists: list[str]
    history: list[HistoryEntry] = Field(description="Newest first, at most 20")


class RecordDetail(BaseModel):
    record: FullRecord


class RecordStats(BaseModel):
    total: int
    archived: int
    by_region: dict[str, int]
    by_category: dict[str, int]
    by_status: dict[str, int]
    by_qualification: dict[str, int]
    by_score: dict[str, int]
    filters_applied: dict[str, Any]


class SavedRecord(BaseModel):
    record: RecordRow


class UpdatedRecord(SavedRecord):
    changed: dict[str, Any] = Field(description="The new values by field")


class QualifiedRow(RecordRow):
    qualification_reason: str


class QualifiedRecord(BaseModel):
    record: QualifiedRow


class FilledList(BaseModel):
    id: str
    name: str
    records: int = Field(description="All records on the list")


class ListAddition(BaseModel):
    filled: FilledList = Field(alias="list")
    added: list[str] = Field(description="Ids that were not on the list before")


class BulkUpdateCount(BaseModel):
    updated: int
    record_ids: list[str]


class BulkDeletionCount(BaseModel):
    deleted: int
    record_ids: list[str]


class ArchivedCount(BaseModel):
    archived: int
    record_ids: list[str]


class StoredDraft(BaseModel):
    draft_id: str
    title: str
    kind: Literal["summary", "report"]
    record_ids: list[str]


class RenderedReport(BaseModel):
    title: str
    body: str = Field(description="Markdown")
    record_ids: list[str]


class ScoreReason(BaseModel):
    points: int
    of: int
    text: str


class Score(RecordReference):
    score: int = Field(ge=0, le=100)
    stored_score: int | None
    reasons: list[ScoreReason]


class Scores(BaseModel):
    scores: list[Score] = Field(description="Highest first")
    total: int
    scored: int
    average: float | None


class MatchedName(BaseModel):
    name: str
    records: list[RecordReference]


class ComparisonCounts(BaseModel):
    both: int
    only_first: int
    only_second: int


class Comparison(BaseModel):
    """A comparison with names (found and missing) or with other_filters (all other fields)."""

    found: list[MatchedName] | None = None
    missing: list[str] | None = None
    both: list[RecordReference] | None = None
    only_first: list[RecordReference] | None = None
    only_second: list[RecordReference] | None = None
    counts: ComparisonCounts | None = None


class FileEntry(BaseModel):
    path: str
    kind: Literal["file", "folder"]
    size: int | None = Field(description="In bytes")
    changed: str | None


class FileEntries(BaseModel):
    entries: list[FileEntry]
    total: int
    passed_over: int


class FileText(BaseModel):
    path: str
    text: str
    first_line: int
    last_line: int
    total_lines: int
    next_offset: int | None = Field(description="None at the end")


class FileHit(BaseModel):
    path: str
    line: int
    text: str


class FileHits(BaseModel):
    """Matching lines, and counts of files."""

    hits: list[FileHit]
    searched: int
    passed_over: int
    left_out: int


class WrittenFile(BaseModel):
    path: str
    size: int = Field(description="In bytes")
    sha256: str
    created: bool = Field(
        description="False if an existing file was replaced or already had this text"
    )


class DeletedFiles(BaseModel):
    deleted: list[str] = Field(description="Paths")


class ScheduleRow(BaseModel):
    id: str
    employee: str
    task: str
    when: str
    cron: str
    time_zone: str
    state: str
    next_at: str | None
    last_at: str | None
    problem: str


class Schedules(BaseModel):
    schedules: list[ScheduleRow]


class CreatedSchedule(BaseModel):
    schedule: ScheduleRow
    next_times: list[str] = Field(description="ISO 8601")


class CancelledSchedule(BaseModel):
    schedule: ScheduleRow


class PageLink(BaseModel):
    text: str
    url: str


class FetchedPage(BaseModel):
    url: str
    status: int
    title: str
    text: str
    total_characters: int
    truncated: bool
    links: list[PageLink] = Field(max_length=200)


class CertificateReport(BaseModel):
    """A site's certificate, or only `error` if there is none."""

    valid: bool | None = None
    problem: str | None = None
    issuer: str | None = None
    expires_at: str | None = None
    days_left: int | None = None
    error: str | None = None


class WebsiteReport(BaseModel):
    """A site's response, or only `error` if there was none."""

    url: str | None = None
    status: int | None = None
    redirects_to: str | None = None
    error: str | None = None


class DomainReport(BaseModel):
    """Findings about a domain, without http and tls if it does not exist."""

    domain: str
    exists: bool
    addresses: list[str]
    http: WebsiteReport | None = None
    tls: CertificateReport | None = None


class SearchHit(BaseModel):
    title: str
    link: str
    site: str
    snippet: str


class SearchHits(BaseModel):
    results: list[SearchHit]
    total: int
    start: int


class FoundCompanies(BaseModel):
    name: str
    official_domain: str | None = Field(description="A guess")
    candidates: list[SearchHit]


class CalculatedValue(BaseModel):
    value: int | float


class CurrentTime(BaseModel):
    iso: str
    date: str
    time: str
    weekday: str
    timezone: str
