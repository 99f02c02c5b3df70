"""A card shows no credentials in its effect, its sentence or the error of its preview."""

from __future__ import annotations

from typing import Any

import pytest

from agents.runs.engine.card_sentences import CallEffect
from agents.runs.engine.cards import compute_effect_here
from tests.tools.toolbox.sample_tools import Echo
from tools.contract import ErrorCode, Level, Preview, Target, ToolContext, ToolError

TOKEN = "token-of-ours"
CONTEXT = ToolContext(1, credentials={"github": {"token": TOKEN}})


class Telling(Echo):
    """A tool that puts the token into its preview, or into the error of its preview."""

    level = Level.WRITE
    refuses = False

    def preview(self, params: Any, context: ToolContext) -> Preview:
        token = context.credentials["github"]["token"]
        if self.refuses:
            raise ToolError(
                ErrorCode.UNAUTHORIZED, f"{token} was refused.", expected=f"not {token}"
            )
        return Preview("update", (Target("1", f"at {token}", 1, {"key": token}, {token: "new"}),))

    def sentence(self, params: Any, preview: Preview) -> str:
        return f"Change **{preview.targets[0].label}**"


def compute(tool: Telling) -> CallEffect:
    return compute_effect_here(tool, tool.check_params({"text": "a"}), CONTEXT)


def test_secrets_are_removed_from_the_effect_and_the_sentence() -> None:
    effect = compute(Telling())
    assert effect.sentence == "Change **at [hidden]**"
    (target,) = effect.preview.targets
    assert (target.label, target.before, target.after) == (
        "at [hidden]",
        {"key": "[hidden]"},
        {"[hidden]": "new"},
    )


def test_secrets_are_removed_from_the_error_of_a_preview() -> None:
    with pytest.raises(ToolError) as caught:
        compute(Telling(refuses=True))
    assert (caught.value.message, caught.value.expected) == (
        "[hidden] was refused.",
        "not [hidden]",
    )
