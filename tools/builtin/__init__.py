"""The built-in tools, in one explicit list."""

from tools.builtin.analysis import BatchScore, CrossReference, ScoreRecord
from tools.builtin.content import BuildReport, GenerateSummary
from tools.builtin.data_bulk import ArchiveAll, BulkDelete, BulkUpdate
from tools.builtin.data_read import GetRecordDetail, GetStats, SearchRecords
from tools.builtin.data_write import AddToList, CreateRecord, QualifyRecord, UpdateRecord
from tools.builtin.employee import AskHuman, Delegate
from tools.builtin.files import DeleteFile, ListFiles, ReadFile, SearchFiles, WriteFile
from tools.builtin.google_search import SearchGoogle
from tools.builtin.report import BuildPreview
from tools.builtin.results import ReadResult
from tools.builtin.schedule import CancelSchedule, CreateSchedule, ListSchedules
from tools.builtin.system import TitleRun
from tools.builtin.utility import Calculate, Now
from tools.builtin.web import FetchPage, SearchCompany, ValidateDomain
from tools.contract import Tool

BUILTIN_TOOLS: tuple[type[Tool], ...] = (
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
    AskHuman,
    Delegate,
    ListSchedules,
    CreateSchedule,
    CancelSchedule,
    ReadResult,
    SearchCompany,
    ValidateDomain,
    FetchPage,
    SearchGoogle,
    Calculate,
    Now,
    TitleRun,
)
