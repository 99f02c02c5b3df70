"""Write the sentence of a card: the tool's own words about the effect, or the tool's name and the
params."""

from dataclasses import dataclass, replace
from typing import Any

from tools.contract import ErrorCode, NothingToDo, Preview, Target, Tool, ToolError
from tools.contract.sentences import cut_end, format_name, format_params, format_title
from tools.toolbox.isolation import BrokenPromise, run_isolated

_SENTENCE_LENGTH = 1000
NO_LONGER_POSSIBLE = "No longer possible: "
"""The beginning of the sentence about a call that its tool now refuses; without it, the sentence
would still promise an effect."""
EXISTS = "exists"
"""The name of a target's field that is False once the target no longer exists."""


@dataclass(frozen=True)
class CallEffect:
    """The effect that a call would have, as its card shows it: in a sentence and in detail."""

    sentence: str
    preview: Preview


def describe_effect(tool: Tool, params: dict[str, object], preview: Preview) -> CallEffect:
    """Return the preview with the tool's sentence about it.

    Raises:
        BrokenPromise: the tool did not return a sentence.
    """
    if preview.is_done:
        return CallEffect(_describe_done(preview), preview)
    try:
        sentence = run_isolated(
            tool, "sentence", lambda: tool.sentence(tool.load_params(params), preview)
        )
    except BrokenPromise:
        raise
    except ToolError:
        sentence = ""
    return CallEffect(
        _shorten(sentence) if sentence.strip() else name_call(tool.title, params), preview
    )


def describe_without_effect(tool: Tool, params: dict[str, object], problem: str) -> CallEffect:
    """Describe a call whose effect is unknown, because of this problem."""
    return _describe_safely(tool, params, Preview.impossible(problem))


def describe_refused(
    tool: Tool, params: dict[str, object], error: ToolError, shown: Any
) -> CallEffect:
    """Describe a call that the tool now refuses, because it is already done or can no longer run.

    Args:
        shown: the preview as the card stores it.
    """
    done = error.preview if isinstance(error, NothingToDo) else _find_deleted(error, shown)
    if done is not None and done.is_done:
        return CallEffect(_describe_done(done), done)
    refused = _describe_safely(tool, params, Preview.refused(error.message))
    return replace(refused, sentence=f"{NO_LONGER_POSSIBLE}{refused.sentence}")


def _find_deleted(error: ToolError, shown: Any) -> Preview | None:
    """Return the preview of a deletion whose only target no longer exists; None for any other
    refusal."""
    targets = shown.get("targets") if isinstance(shown, dict) else None
    if error.code != ErrorCode.NOT_FOUND or not isinstance(targets, list) or len(targets) != 1:
        return None
    (target,) = targets
    if not target.get("before") or target.get("after"):
        return None
    gone = Target(
        target.get("id", ""), target.get("label", ""), before={EXISTS: False}, after={EXISTS: False}
    )
    return Preview(str(shown.get("effect")), (gone,), reversible=False)


def _describe_done(preview: Preview) -> str:
    if preview.total > 1:
        return f"Nothing to change: all {preview.total:,} already have these values"
    (target,) = preview.targets
    state = "no longer exists" if target.after == {EXISTS: False} else "already has these values"
    return f"Nothing to change: {format_name(target.label)} {state}"


def _describe_safely(tool: Tool, params: dict[str, object], preview: Preview) -> CallEffect:
    try:
        return describe_effect(tool, params, preview)
    except BrokenPromise:
        return CallEffect(name_call(tool.title, params), preview)


def name_call(title: str, params: dict[str, object]) -> str:
    """Return the sentence for a call whose tool does not write one."""
    return _shorten(f"Use {format_title(title)}{format_params(params)}")


def _shorten(sentence: str) -> str:
    more = len(sentence) - _SENTENCE_LENGTH
    start = cut_end(sentence, _SENTENCE_LENGTH)
    return f"{start} ({more:,} more characters)" if more > 0 else start
