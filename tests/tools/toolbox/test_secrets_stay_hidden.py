"""Everything that a tool returns or reports is cleaned of the credentials that it was given."""

from __future__ import annotations

from typing import Any

from tests.features import feature
from tests.tools.toolbox.sample_tools import Does
from tools.contract import ErrorCode, ToolContext, ToolError, ToolResult
from tools.testing import run_tool
from tools.toolbox import Batch, FinishedCall, PreparedCall, Progress

TOKEN = 'tok"en-\\1-ü'
CREDENTIALS = {"github": {"token": TOKEN, "user": "me"}, "longer": {"token": TOKEN + "-and-more"}}


def told(work: Any) -> ToolResult:
    return run_tool(Does(work), credentials=CREDENTIALS)


@feature(
    "The toolbox and its settings",
    "Credentials of at least 6 characters appear in no result, error or progress",
    "tools/toolbox/secrecy.py",
)
def test_secrets_are_hidden_in_data_summary_markdown_and_metadata() -> None:
    result = told(
        lambda context: ToolResult.ok(
            {
                "headers": [{"Authorization": f"Bearer {context.credentials['github']['token']}"}],
                TOKEN: 1,
            },
            f"Asked with {TOKEN}-and-more",
            f"# {TOKEN}",
            source=f"https://x/?key={TOKEN}",
        )
    )
    assert result.success
    assert result.data == {"headers": [{"Authorization": "Bearer [hidden]"}], "[hidden]": 1}
    assert (result.summary, result.markdown) == ("Asked with [hidden]", "# [hidden]")
    assert result.metadata["source"] == "https://x/?key=[hidden]"


def test_secrets_are_hidden_in_an_error_and_its_text_for_the_model() -> None:
    def work(context: ToolContext) -> ToolResult:
        raise ToolError(ErrorCode.UNAUTHORIZED, f"{TOKEN} was refused.", expected=f"not {TOKEN}")

    result = told(work)
    assert result.error is not None
    assert result.error.message == "[hidden] was refused."
    assert (
        result.for_model()
        == "TOOL ERROR: UNAUTHORIZED\n[hidden] was refused.\nEXPECTED: not [hidden]"
    )
    assert result.summary == "[hidden] was refused."


def test_secrets_are_hidden_in_text_and_progress() -> None:
    def work(context: ToolContext) -> str:
        context.progress(0.5, f"with {TOKEN}")
        return f"Used {TOKEN}\nfor all"

    batch = Batch()
    batch.start(PreparedCall(1, Does(work), {}, ToolContext(1, credentials=CREDENTIALS), 5.0))
    said: list[str] = []
    while batch.running:
        for report in batch.wait(float("inf")):
            if isinstance(report, Progress):
                said.append(report.text)
            elif isinstance(report, FinishedCall):
                said.append(report.result.markdown)
    assert "Used [hidden]\nfor all" in said
    assert TOKEN not in str(said)


def test_short_values_and_other_results_stay_unchanged() -> None:
    result = told(lambda context: ToolResult.ok({"name": "me and the team"}, "me"))
    assert (result.data, result.summary) == ({"name": "me and the team"}, "me")
