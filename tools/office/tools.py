"""The tools of the office, in one explicit list; they are loaded as the plugin `office`."""

from tools.builtin.analysis import BatchScore, CrossReference, ScoreRecord
from tools.builtin.content import BuildReport, GenerateSummary
from tools.builtin.data_bulk import ArchiveAll, BulkDelete, BulkUpdate
from tools.builtin.data_read import GetRecordDetail, GetStats, SearchRecords
from tools.builtin.data_write import AddToList, CreateRecord, QualifyRecord, UpdateRecord
from tools.builtin.files import DeleteFile, ListFiles, ReadFile, SearchFiles, WriteFile
from tools.builtin.google_search import SearchGoogle
from tools.builtin.report import BuildPreview
from tools.builtin.schedule import CancelSchedule, CreateSchedule, ListSchedules
from tools.builtin.utility import Calculate, Now
from tools.builtin.web import FetchPage, SearchCompany, ValidateDomain
from tools.contract import Tool

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
