"""The card of an external tool lists each request inside its call."""

from typing import Any

from agents.runs.engine.cards import MAX_LISTED_REQUESTS, SEND, compute_effect_here
from tests.tools.toolbox.test_named_hosts import Outside
from tools.contract import Preview, ToolContext


def preview_of(count: int, **more: Any) -> Preview:
    """Return the preview of a call with this many requests."""
    requests = [{"method": "DELETE", "path": f"/pets/{number}"} for number in range(count)]
    return compute_effect_here(
        Outside(**more), {"requests": requests}, ToolContext(organization_id=1)
    ).preview


def test_each_request_is_listed_as_a_target_up_to_the_limit() -> None:
    preview = preview_of(MAX_LISTED_REQUESTS)
    assert (preview.effect, len(preview.targets)) == (SEND, MAX_LISTED_REQUESTS)
    assert [target.label for target in preview.targets[:2]] == ["DELETE /pets/0", "DELETE /pets/1"]


def test_a_call_with_more_requests_than_the_limit_cannot_be_previewed() -> None:
    assert "at most 1,000 can be listed" in preview_of(MAX_LISTED_REQUESTS + 1).problem


def test_params_of_built_in_tools_are_not_listed_as_requests() -> None:
    assert "no preview" in preview_of(1, source="built in").problem
