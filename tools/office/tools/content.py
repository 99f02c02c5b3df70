"""Tools that store an employee's text as a draft, which stays private until a person uses it."""

from pydantic import Field

from tools.contract import Level, Tool, ToolContext, ToolResult
from tools.office.records.drafts import NewDraft, store_draft
from tools.office.records.fields import Body, ListName, RecordIds, Sparse
from tools.office.records.models import Draft
from tools.office.records.queries import check_ids
from tools.office.tools.outputs import StoredDraft
from tools.office.tools.report_rendering import Report, ReportParams, render_report


class GenerateSummary(Tool):
    """Result data: {draft_id, title, kind, record_ids}."""

    name = "content.generateSummary"
    display_name = "Draft a summary"
    description = (
        "Store a summary that you have written, in Markdown, as a draft with links to the records it is about. "
        "A person reads it before it is used."
    )
    level = Level.DRAFT
    Output = StoredDraft

    class Params(Sparse):
        title: ListName = Field(description="Title of the summary")
        body: Body = Field(description="The text, in Markdown")
        record_ids: RecordIds = Field(
            default_factory=list, max_length=200, description="Ids of the records that it is about"
        )

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        ids = check_ids(context.organization_id, params.record_ids)
        draft = store_draft(
            _build_draft(context, Draft.Kind.SUMMARY, Report(params.title, params.body, ids))
        )
        return _build_result(draft, ids)


class BuildReport(Tool):
    """Result data: {draft_id, title, kind, record_ids}."""

    name = "content.buildReport"
    display_name = "Draft a report"
    description = (
        "Build a report from sections of text and tables of records and store it as a draft. "
        "report.buildPreview shows the same report without storing it."
    )
    level = Level.DRAFT
    Output = StoredDraft

    class Params(ReportParams):
        pass

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        report = render_report(params, context.organization_id)
        draft = store_draft(_build_draft(context, Draft.Kind.REPORT, report))
        return _build_result(draft, report.record_ids)


def _build_draft(context: ToolContext, kind: Draft.Kind, report: Report) -> NewDraft:
    return NewDraft(
        organization_id=context.organization_id,
        kind=kind,
        title=report.title,
        body=report.body,
        record_ids=report.record_ids,
        employee=context.employee_name,
        run_id=context.run_id,
        idempotency_key=context.idempotency_key,
    )


def _build_result(draft: Draft, record_ids: tuple[int, ...]) -> ToolResult:
    data = {
        "draft_id": str(draft.pk),
        "title": draft.title,
        "kind": draft.kind,
        "record_ids": [str(record_id) for record_id in record_ids],
    }
    return ToolResult.ok(data, f"Drafted the {draft.kind} “{draft.title}”")
