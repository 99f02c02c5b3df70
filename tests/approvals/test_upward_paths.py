"""Paths that lead upward or to a user's home folder are found in every spelling."""

# ruff: noqa: RUF001 - some of the spellings consist of look-alike characters
from __future__ import annotations

import pytest

from agents.approvals.warnings.upward_paths import HOME, UPWARD, find_detour


@pytest.mark.parametrize(
    ("name", "text", "detour"),
    [
        ("path", "reports/../../etc/passwd", UPWARD),
        ("path", "reports/a/b/../../../x", UPWARD),
        ("path", "reports/..%2f..%2fetc", UPWARD),
        ("path", "reports/%252e%252e/x", UPWARD),
        ("path", "%c0%ae%c0%ae/x", UPWARD),
        ("path", "a/&#46;./x", UPWARD),
        ("path", "a/.\u200b./x", UPWARD),
        ("path", "reports\\..\\x", UPWARD),
        ("path", "reports/．．/x", UPWARD),
        ("path", "reports/‥/x", UPWARD),
        ("path", "reports/…/…/x", UPWARD),
        ("path", "reports/.. /x", UPWARD),
        ("path", "C:..\\x", UPWARD),
        ("path", "..", UPWARD),
        ("filePath", "my reports/../x", UPWARD),
        ("target", "../x", UPWARD),
        ("", "../x", UPWARD),
        ("notes", "Copy reports/../x to the list", UPWARD),
        ("path", "~root/.ssh/authorized_keys", HOME),
        ("path", "~root", HOME),
        ("target", "%7Eroot/x", HOME),
    ],
)
def test_a_path_that_leads_elsewhere_is_found(name: str, text: str, detour: str) -> None:
    assert find_detour(name, text) == detour


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("path", "./docs/a.md"),
        ("path", "~/notes.md"),
        ("path", "a/b..c/d...e"),
        ("path", "reports/2026…/x"),
        ("path", "/home/ann/50%/x"),
        ("url", "https://acme.com/~bob/x"),
        ("package", "./..."),
        ("range", "1..10"),
        ("range", "main..feature/x"),
        ("notes", "..."),
        ("notes", ".."),
        ("notes", "Call again... or on 12/10.."),
        ("notes", "and/or/..."),
        ("notes", "go test ./... and src/.../a.py"),
        ("notes", "~5, ~10/20, v1.2.3, 3:1, 12:30"),
        ("notes", "import a from '../a'\nimport b from './../b'"),
        ("command", 'source "$(dirname "$0")/../lib.sh"'),
        ("notes", "key: value"),
    ],
)
def test_an_ordinary_path_or_sentence_is_not_found(name: str, text: str) -> None:
    assert find_detour(name, text) == ""
