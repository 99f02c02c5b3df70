"""The tools of the office, in one explicit list; they are loaded as the plugin `office`."""

from tools.contract import Tool
from tools.office.tools.analysis import BatchScore, CrossReference, ScoreRecord
from tools.office.tools.content import BuildReport, GenerateSummary
from tools.office.tools.data_bulk import ArchiveAll, BulkDelete, BulkUpdate
from tools.office.tools.data_read import GetRecordDetail, GetStats, SearchRecords
from tools.office.tools.data_write import AddToList, CreateRecord, QualifyRecord, UpdateRecord
from tools.office.tools.files import DeleteFile, ListFiles, ReadFile, SearchFiles, WriteFile
from tools.office.tools.google_search import SearchGoogle
from tools.office.tools.report import BuildPreview
from tools.office.tools.schedule import CancelSchedule, CreateSchedule, ListSchedules
from tools.office.tools.utility import Calculate, Now
from tools.office.tools.web import FetchPage, SearchCompany, ValidateDomain

OFFICE_TOOLS: tuple[type[Tool], ...] = (
    SearchRecords,
    GetRecordDetail,
    GetStats,
    CreateRecord,
    UpdateRecord,
    QualifyRecord,
    AddToList,
    BulkUpdate,
    BulkDelete,
    ArchiveAll,
    ScoreRecord,
    BatchScore,
    CrossReference,
    GenerateSummary,
    BuildReport,
    BuildPreview,
    ListFiles,
    ReadFile,
    SearchFiles,
    WriteFile,
    DeleteFile,
    ListSchedules,
    CreateSchedule,
    CancelSchedule,
    SearchCompany,
    ValidateDomain,
    FetchPage,
    SearchGoogle,
    Calculate,
    Now,
)
