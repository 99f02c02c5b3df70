"""Generated responses of an MCP server to a call: every part of a response takes every invalid
form, and the correct interpretation is given for each."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

WORDS = "Account is locked"
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1.5,
        10**30,
        "",
        "text",
        "é\u202e\u0000",
        [],
        {},
        [[]],
        [None],
        [1, "a"],
    ),
    *({"a": 1}, {"type": "text"}, [{"type": "text"}], [{"type": 7}], {"content": None}),
)
"""Values that are tried in every field of a response."""
PARTS: tuple[Any, ...] = (
    *(
        {"type": "text", "text": WORDS},
        {"type": "text"},
        {"type": "text", "text": None},
        {"type": "text", "text": 7},
    ),
    *(
        {"text": WORDS},
        {"type": "video", "data": "AAAA"},
        {"type": "image"},
        {"type": "image", "data": None},
    ),
    *(
        {"type": "image", "data": "AAAA", "mimeType": 3},
        {"type": "audio", "data": {"a": 1}},
        {"type": "tool_use"},
    ),
    *(
        {"type": "resource"},
        {"type": "resource", "resource": None},
        {"type": "resource", "resource": {"uri": 1}},
    ),
    *(
        {"type": "resource", "resource": {"text": 5}},
        {"type": "resource", "resource": {"blob": [1]}},
    ),
    *(
        {"type": "resource_link"},
        {"type": "resource_link", "uri": 5, "size": "big"},
        {"type": ["text"]},
        {},
    ),
)
"""Valid and invalid parts of a result's content."""
ENVELOPES: tuple[dict[str, Any], ...] = (
    {"jsonrpc": "2.0"},
    {"jsonrpc": "1.0"},
    {"jsonrpc": 2.0},
    {},
    {"jsonrpc": "2.0", "error": None},
    {"jsonrpc": "2.0", "extra": [1]},
)


@dataclass(frozen=True)
class Shape:
    """A generated response.

    Attributes:
        line: its JSON, with MY_ID in place of the id.
        outcome: the outcome of a write: happened, failed or unknown.
        has_words: True if the response contains WORDS, which must be passed on.
    """

    line: str
    outcome: str
    has_words: bool = False


def generate_shapes() -> list[Shape]:
    """Generate all shapes, each once."""
    found = itertools.chain(_results(), _parts(), _structures(), _flags(), _errors(), _envelopes())
    return list(dict.fromkeys(found))


def _write(message: dict[str, Any]) -> str:
    return json.dumps({**message, "id": "MY_ID"}).replace('"MY_ID"', "MY_ID")


def _has_happened(result: Any) -> bool:
    return not isinstance(result, dict) or result.get("isError") in (None, False)


def _build(result: Any, outcome: str = "happened") -> Shape:
    has_words = outcome != "unknown" and WORDS in json.dumps(result)
    return Shape(_write({"jsonrpc": "2.0", "result": result}), outcome, has_words)


def _results() -> Iterator[Shape]:
    for value in VALUES:
        yield _build(value)
        yield _build({"content": value})
        yield _build({"structuredContent": value})
        yield _build({"content": [value]})
        yield _build({"content": [{"type": "text", "text": value}]})
        yield _build({"_meta": value, "content": []})
        yield _build({"unheard": value})
        yield _build({"content": [{"type": "text", "text": WORDS}, value]})
        yield _build({"content": [{"type": "text", "text": WORDS}], "structuredContent": value})


def _parts() -> Iterator[Shape]:
    for part in PARTS:
        yield _build({"content": [part]})
        yield _build({"content": part})
        yield _build({"content": [part, {"type": "text", "text": WORDS}]})
        yield _build({"content": [part], "structuredContent": {"n": "one"}})


def _structures() -> Iterator[Shape]:
    for value in ({"n": 1}, {"n": "one"}, [1], "one", {"n": {"n": 1}}):
        for content in ([], None, WORDS, [{"type": "text", "text": json.dumps(value)}]):
            yield _build({"content": content, "structuredContent": value, "resultType": "complete"})


def _flags() -> Iterator[Shape]:
    content = [{"type": "text", "text": WORDS}]
    for flag, outcome in (
        *(
            (True, "failed"),
            (1, "failed"),
            ("true", "failed"),
            (False, "happened"),
            (None, "happened"),
        ),
        *(
            (0, "happened"),
            ("false", "happened"),
            ("perhaps", "unknown"),
            ([], "unknown"),
            ({"a": 1}, "unknown"),
        ),
        *((2, "unknown"), (-1, "unknown")),
    ):
        shape = _build({"content": content, "isError": flag}, outcome)
        yield Shape(shape.line, outcome, has_words=True)
        for value in VALUES[:6]:
            yield _build({"content": value, "isError": flag}, outcome)
        shape = _build({"structuredContent": {"why": WORDS}, "isError": flag}, outcome)
        yield Shape(shape.line, outcome, has_words=True)


def _errors() -> Iterator[Shape]:
    codes: tuple[Any, ...] = (
        -32000,
        -32001,
        -32600,
        -32601,
        -32602,
        -32603,
        -32700,
        -32042,
        0,
        1,
        404,
        10**12,
    )
    for code in (*codes, "E_LOCKED", None, 1.5, True, [1], {}):
        error: Any = {"code": code, "message": WORDS}
        outcome = "failed" if code in (-32601, -32602) else "unknown"
        yield Shape(_write({"jsonrpc": "2.0", "error": error}), outcome, has_words=True)
        yield Shape(_write({"error": {**error, "data": [1]}}), outcome, has_words=True)
    for error in (
        WORDS,
        [WORDS],
        {"message": WORDS},
        {"detail": {"reason": WORDS}},
        {"data": WORDS},
        {"why": WORDS},
    ):
        yield Shape(_write({"jsonrpc": "2.0", "error": error}), "unknown", has_words=True)
    for error in (
        True,
        5,
        {"code": -32000},
        {"code": -32000, "message": None},
        ["x"],
        {"message": {"a": 1}},
    ):
        yield Shape(_write({"jsonrpc": "2.0", "error": error}), "unknown")
    both = {"result": {"content": []}, "error": {"code": -32000, "message": WORDS}}
    yield Shape(_write({"jsonrpc": "2.0", **both}), "unknown", has_words=True)
    rests: tuple[dict[str, Any], ...] = (
        {},
        {"message": WORDS},
        {"detail": WORDS},
        {"results": {"content": []}},
    )
    for rest in rests:
        yield Shape(_write({"jsonrpc": "2.0", **rest}), "unknown", has_words=WORDS in str(rest))


def _envelopes() -> Iterator[Shape]:
    results: tuple[Any, ...] = (
        {"content": [{"type": "text", "text": WORDS}]},
        WORDS,
        [{"type": "text", "text": WORDS}],
    )
    for envelope, result in itertools.product(ENVELOPES, results):
        line = _write({**envelope, "result": result})
        for text in (
            line,
            f"[{line}]",
            line.replace("MY_ID", "MY_ID.0"),
            line.replace("MY_ID", '"MY_ID"'),
        ):
            yield Shape(text, "happened", has_words=True)
        yield Shape(line.replace("MY_ID", "null"), "happened", has_words=True)
