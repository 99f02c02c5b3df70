"""The tool that previews a report without storing it."""

from tools.contract import Level, Tool, ToolContext, ToolResult
from tools.office.tools.outputs import RenderedReport
from tools.office.tools.report_rendering import ReportParams, render_report


class BuildPreview(Tool):
    """Result data: {title, body, record_ids}; `body` is Markdown."""

    name = "report.buildPreview"
    display_name = "Preview a report"
    description = (
        "Render a report from sections of text and tables of records, "
        "as content.buildReport does, but do not store it."
    )
    level = Level.DRAFT
    Output = RenderedReport

    class Params(ReportParams):
        pass

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        report = render_report(params, context.organization_id)
        ids = [str(record_id) for record_id in report.record_ids]
        data = {"title": params.title, "body": report.body, "record_ids": ids}
        return ToolResult.ok(data, f"Rendered the report “{params.title}”", report.body)
