"""The card of a tool from outside lists each request that its call carries."""

from typing import Any

from agents.runs.engine.cards import MAX_LISTED_REQUESTS, SEND, compute_effect_here
from tests.tools.toolbox.test_named_hosts import Outside
from tools.contract import Preview, ToolContext


def preview_of(count: int, **more: Any) -> Preview:
    """What the card of a call with so many requests shows."""
    requests = [{"method": "DELETE", "path": f"/pets/{number}"} for number in range(count)]
    return compute_effect_here(Outside(**more), {"requests": requests}, ToolContext(organization_id=1)).preview


def test_each_is_a_target_as_many_as_can_be_listed() -> None:
    preview = preview_of(MAX_LISTED_REQUESTS)
    assert (preview.effect, len(preview.targets)) == (SEND, MAX_LISTED_REQUESTS)
    assert [target.label for target in preview.targets[:2]] == ["DELETE /pets/0", "DELETE /pets/1"]


def test_more_cannot_be_previewed() -> None:
    assert "at most 1,000 can be listed" in preview_of(MAX_LISTED_REQUESTS + 1).problem


def test_what_gadgets_own_tools_take_is_no_request() -> None:
    assert "no preview" in preview_of(1, source="built in").problem
