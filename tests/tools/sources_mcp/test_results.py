"""The text of a server's response for people and models: the summary is meaningful, and content is
not repeated."""

from __future__ import annotations

import base64
import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.features import feature
from tools.contract import ToolResult
from tools.sources.mcp import Definition
from tools.sources.mcp.results import build_result

REAL = json.loads((Path(__file__).parent / "real_responses.json").read_text())
"""Responses of published servers, each with its expected summary."""
BINARY = base64.b64encode(random.Random(7).randbytes(150_000)).decode()


def read(response: Any, output_schema: dict[str, Any] | None = None) -> ToolResult:
    return build_result(
        response, Definition("t", "t", "", "", {}, output_schema, {}, ""), "there.t"
    )


def text(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": each} for each in texts]


@feature(
    "Tools from API descriptions",
    "The line of an MCP call says what the server responded",
    "tools/sources/mcp/summaries.py",
)
@pytest.mark.parametrize(
    "response", REAL, ids=[f"{index}-{each['tool']}" for index, each in enumerate(REAL)]
)
def test_a_real_response_has_a_meaningful_summary(response: dict[str, Any]) -> None:
    summary = read(response["result"], response["output_schema"]).summary
    assert summary == response["summary"]
    assert summary not in ("", "Done")
    assert summary[0] not in "#{}[]`*-"


@pytest.mark.parametrize(
    ("response", "summary"),
    [
        ({"content": text("Done")}, "The server responded with text"),
        ({"content": text("Done."), "structuredContent": {"id": 7, "name": "Ada"}}, "Ada"),
        ({"content": text("### Result\n\n{")}, "The server responded with text"),
        ({"content": text('### Result\n{"id": 7, "total": 3}')}, "id: 7, total: 3"),
        ({"content": text("## Orders of Ada\n\n---\n")}, "Orders of Ada"),
        (
            {"content": text('```json\n[{"id": 1, "name": "A"}, {"id": 2, "name": "B"}]\n```')},
            "2 items: id, name",
        ),
        ({"content": text('{"id": 1}', '{"id": 2}', '{"id": 3}')}, "3 items: id"),
        (
            {"structuredContent": {"result": [{"id": n, "name": "x", "at": 1} for n in range(3)]}},
            "3 items: id, name, at",
        ),
        ({"structuredContent": {"result": []}}, "No items"),
        ({"structuredContent": {"result": 3}}, "result: 3"),
        ({"structuredContent": [1, 2]}, "2 items: 1, 2"),
        (
            {"content": text("- [x] **Ship** `the` order"), "structuredContent": {"a": 1}},
            "Ship the order",
        ),
        ({"content": text("Found these:\n\n1. First one\n2. Second")}, "Found these: First one"),
        ({"content": text("| id | name |\n|----|------|\n| 1 | Ada |")}, "id name"),
        ({"content": text("<result>\n<b>Sent</b> to Ada\n</result>")}, "Sent to Ada"),
        ({"content": []}, "The server responded without content"),
        (
            {"content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"}]},
            "image: image/png, 3 bytes, not shown",
        ),
        ({"content": text("42")}, "42"),
        (
            {"structuredContent": {"items": [{"id": 1, "name": "a"}] * 3, "next": None}},
            "3 items: id, name",
        ),
        ({"structuredContent": {"more": False, "rows": [{"id": 1}]}}, "rows: 1 item: id"),
        ({"structuredContent": {"rows": [{"id": 1}], "total": 1, "next": None}}, "total: 1"),
        ({"structuredContent": {"found": None, "more": False}}, "found: null, more: false"),
        ({"content": text("true")}, "The server responded: true"),
        ({"content": text("OK"), "structuredContent": {}}, "The server responded: OK"),
    ],
)
def test_a_summary_is_never_just_the_word_done_a_heading_or_a_brace(
    response: dict[str, Any], summary: str
) -> None:
    assert read(response).summary == summary


@feature(
    "Tools from API descriptions",
    "If the text and the structure of an MCP response say the same, it is sent once; binary content is not sent",
    "tools/sources/mcp/repetitions.py",
)
@pytest.mark.parametrize(
    ("shown", "data"),
    [
        ("The order was shipped.", {"content": "The order was shipped."}),
        (
            "The order was shipped.",
            {"content": [{"type": "text", "text": "The order was shipped."}]},
        ),
        ('{"id": 1, "name": "Ada"}', {"id": 1, "name": "Ada"}),
        ('{\n  "id": 1,\n  "name": "Ada"\n}', {"result": {"id": 1, "name": "Ada"}}),
        ('{"user": {"id": 1, "name": "Ada"}}', {"id": 1, "name": "Ada"}),
        ('```json\n{"id": 1}\n```', {"id": 1}),
        (
            "Order number: 4711\nCustomer: Ada\nTotal: 30 EUR\nState: shipped",
            {"order": {"number": 4711, "customer": "Ada", "total": "30 EUR", "state": "shipped"}},
        ),
    ],
)
def test_text_that_repeats_the_structured_content_is_sent_once(shown: str, data: Any) -> None:
    result = read({"content": text(shown), "structuredContent": data})
    assert (result.markdown, result.data) == ("", data)


def test_text_that_adds_to_the_structured_content_is_kept() -> None:
    result = read(
        {"content": text("It is not shipped yet."), "structuredContent": {"shipped": False}}
    )
    assert result.for_model() == 'It is not shipped yet.\n\n```json\n{"shipped":false}\n```'
    mixed = read(
        {
            "content": text('Two orders: [{"id": 1}, {"id": 2}]'),
            "structuredContent": [{"id": 1}, {"id": 2}],
        }
    )
    assert mixed.for_model().count('"id":') == 2
    assert mixed.for_model().startswith("Two orders:")


def test_long_text_inside_the_structured_content_is_sent_once() -> None:
    page = "A sentence about ships. " * 100
    result = read(
        {
            "content": text(f"The page says:\n{page}"),
            "structuredContent": {"path": "/a", "page": page},
        }
    )
    assert result.for_model().count("A sentence about ships.") == 100
    assert '"page":"[as in the text above]"' in result.for_model()
    assert result.data["page"] == page


@pytest.mark.parametrize(
    "response",
    [
        {"structuredContent": {"type": "image", "data": BINARY}},
        {"structuredContent": {"images": [{"mimeType": "image/png", "blob": BINARY}]}},
        {"structuredContent": {"picture": BINARY}},
        {"structuredContent": {"picture": {"type": "Buffer", "data": list(range(256)) * 40}}},
        {"content": text(json.dumps({"type": "Buffer", "data": list(range(256)) * 40}))},
        {"structuredContent": {"picture": f"data:image/png;base64,{BINARY}"}},
        {
            "structuredContent": {
                "mail": "\n".join(BINARY[at : at + 76] for at in range(0, len(BINARY), 76))
            }
        },
        {"content": text(json.dumps({"type": "image", "data": BINARY}))},
        {"content": text(f"![x](data:image/png;base64,{BINARY})")},
        {"content": text(BINARY)},
        {"content": [{"type": "resource", "resource": {"uri": "a:b", "text": BINARY}}]},
        {"content": [{"type": "film", "data": BINARY}]},
        {"content": {"data": BINARY}},
    ],
)
def test_binary_content_is_never_sent_to_a_model(response: dict[str, Any]) -> None:
    result = read(response)
    assert len(result.for_model()) < 500
    assert len(json.dumps(result.data)) < 500


def test_words_numbers_and_short_tokens_are_not_binary_content() -> None:
    image = {"type": "image", "name": "x" * 3_000, "url": "https://example.com/" + "a/" * 900}
    data = {
        "image": image,
        "numbers": {"type": "Series", "data": [1, 2] * 100},
        "token": "aB3" * 100,
        "digits": "1234567890" * 300,
    }
    assert read({"structuredContent": data}).data == data


def test_structured_content_that_violates_its_schema_is_dropped_with_one_line() -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
    result = read({"content": text("Written."), "structuredContent": {"ok": "yes"}}, schema)
    assert (result.success, result.data, result.summary) == (True, None, "Written.")
    assert result.markdown.startswith(
        "Written.\n\n[the structured part is left out: it does not fit"
    )
    assert read({"content": text("x")}, schema).data is None, "a missing structure is no fault"


@pytest.mark.parametrize(
    "response",
    [
        {
            "content": text("```\n1\n```\n" * 5_000 + "end"),
            "structuredContent": list(range(2, 20_000)),
        },
        {"content": text("```\n" + " " * 60_000 + "end"), "structuredContent": {"a": 1}},
        {
            "content": text(*(f"a{number}" for number in range(5_000))),
            "structuredContent": list(range(20_000)),
        },
        {"content": text("[" * 20_000, *["<a " * 7_000] * 10)},
        {"content": text(("aB1" * 341 + " ") * 3_000)},
    ],
    ids=["code blocks", "spaces", "texts", "markup", "nearly binary"],
)
def test_a_hostile_response_is_read_in_bounded_time(response: dict[str, Any]) -> None:
    began = time.process_time()
    read(response)
    assert time.process_time() - began < 2


def test_an_image_from_a_server_becomes_a_result_file() -> None:
    (file,) = read({"content": [{"type": "image", "data": BINARY, "mimeType": "image/png"}]}).files
    assert (file.name, file.content, file.content_type) == (
        "image-1.png",
        base64.b64decode(BINARY),
        "image/png",
    )
