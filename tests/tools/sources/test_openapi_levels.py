"""An operation's method sets its minimum level, and words in its description only raise it."""

from typing import Any

import pytest

from tests.features import feature
from tools.contract import Level
from tools.sources.openapi.levels import (
    FLOORS,
    RAISING_VERBS,
    RAISING_WORDS,
    InferredLevel,
    infer_level,
)


def infer(method: str, path: str, operation_id: str = "", **properties: Any) -> InferredLevel:
    params = {"type": "object", "properties": properties}
    return infer_level(
        {"method": method, "path": path, "operation_id": operation_id, "params": params}
    )


@pytest.mark.parametrize(
    ("method", "path", "operation_id", "level"),
    [
        ("GET", "/pets", "listPets", Level.READ),
        ("GET", "/importErrors", "get_import_errors", Level.READ),
        ("GET", "/updates", "", Level.READ),
        ("GET", "/address/{id}", "getAddress", Level.READ),
        ("GET", "/workflow/runs", "actions/list-workflow-runs", Level.READ),
        ("GET", "/servers/{id}/restart", "", Level.WRITE),
        ("GET", "/jobs/{id}/run", "runJob", Level.WRITE),
        ("GET", "/instances", "createInstance", Level.WRITE),
        ("GET", "/users/{id}/delete", "", Level.DESTRUCTIVE),
        ("GET", "/pets", "pets.removeAll", Level.DESTRUCTIVE),
        ("HEAD", "/pets", "", Level.READ),
        ("GET", "/api?action=deleteAll", "callApi", Level.DESTRUCTIVE),
        ("GET", "/api?do=run&x=1", "", Level.WRITE),
        ("GET", "/api?view=list", "", Level.READ),
        ("POST", "/pets/search", "searchPets", Level.WRITE),
        ("POST", "/cache:clear", "", Level.DESTRUCTIVE),
        ("PUT", "/pets/{id}", "getPet", Level.WRITE),
        ("PATCH", "/tokens/{id}", "revoke_token", Level.DESTRUCTIVE),
        ("DELETE", "/pets/{id}", "getPet", Level.DESTRUCTIVE),
    ],
)
def test_methods_and_words_determine_the_level(
    method: str, path: str, operation_id: str, level: Level
) -> None:
    assert infer(method, path, operation_id).level is level


@feature(
    "Tools from API descriptions",
    "The HTTP method sets the minimum level, and words can only raise it",
    "tools/sources/openapi/levels.py",
)
def test_words_never_lower_a_level() -> None:
    words = [
        word
        for known in (RAISING_WORDS, RAISING_VERBS)
        for listed in known.values()
        for word in listed
    ]
    for method, floor in FLOORS.items():
        for word in [*words, "get", "list", "read", "search", "dryRun"]:
            assert infer(method, f"/{word}", word).level.rank >= floor.rank


def test_the_reason_quotes_the_word() -> None:
    assert infer("GET", "/a", "deleteAll").reason == "GET is read level, but its id says 'delete'"
