"""Without npm, the tests that need it fail in CI, and are skipped elsewhere."""

from __future__ import annotations

import shutil

import pytest

from tests import node


@pytest.mark.parametrize(
    ("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
def test_a_test_without_npm_fails_in_ci_and_is_skipped_elsewhere(
    monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="These tests need npm"):
        node.require_node()
