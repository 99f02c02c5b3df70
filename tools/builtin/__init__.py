"""The tools that ship: one explicit list."""

from tools.contract import Tool

from .analysis import BatchScore, CrossReference, ScoreRecord
from .content import BuildReport, GenerateSummary
from .data_bulk import ArchiveAll, BulkDelete, BulkUpdate
from .data_read import GetRecordDetail, GetStats, SearchRecords
from .data_write import AddToList, CreateRecord, QualifyRecord, UpdateRecord
from .employee import AskHuman, Delegate
from .files import DeleteFile, ListFiles, ReadFile, SearchFiles, WriteFile
from .google_search import SearchGoogle
from .report import BuildPreview
from .results import ReadResult
from .schedule import CancelSchedule, CreateSchedule, ListSchedules
from .system import TitleRun
from .utility import Calculate, Now
from .web import FetchPage, SearchCompany, ValidateDomain

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
