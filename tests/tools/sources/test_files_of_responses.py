"""Files in the responses of APIs and MCP servers become files of the result."""

from __future__ import annotations

import base64

import pytest

from tools.contract import ResultFile
from tools.network import ClientResponse
from tools.sources.mcp.result_files import list_files
from tools.sources.openapi.responses import build_result

PDF = b"%PDF-1.7"


def answer(address: str = "https://api.example/v1/files/7", **headers: str) -> ClientResponse:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return ClientResponse(status=200, headers=given, content=PDF, url=address)


@pytest.mark.parametrize(
    ("response", "name"),
    [
        (answer(content_type="application/pdf"), "7.pdf"),
        (
            answer("https://api.example/r%C3%A9port.pdf?x=1", content_type="application/pdf"),
            "réport.pdf",
        ),
        (
            answer(
                content_type="application/pdf", content_disposition='attachment; filename="Q3.pdf"'
            ),
            "Q3.pdf",
        ),
        (
            answer(
                content_type="application/pdf",
                content_disposition="attachment; filename*=UTF-8''r%C3%A9.pdf",
            ),
            "ré.pdf",
        ),
        (answer("https://api.example/", content_type="application/octet-stream"), "file.bin"),
    ],
)
def test_a_response_that_is_a_file_becomes_a_result_file(
    response: ClientResponse, name: str
) -> None:
    result = build_result(response, "GET /files/7")
    kind = response.headers["content-type"]
    assert list(result.files) == [ResultFile(name, PDF, kind)]
    assert result.data == {"content_type": kind, "bytes": len(PDF)}


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/xml"])
def test_a_response_that_is_text_is_not_a_file(kind: str) -> None:
    assert not build_result(answer(content_type=kind), "GET /").files


def test_valid_images_and_blobs_from_a_server_become_files() -> None:
    data = base64.b64encode(PDF).decode()
    blob = {"uri": "file:///docs/a.pdf", "mimeType": "application/pdf", "blob": data}
    parts = [
        {"type": "text", "text": "Here"},
        {"type": "image", "data": data, "mimeType": "image/png"},
        {"type": "audio", "data": "no base64!", "mimeType": "audio/wav"},
        {"type": "resource", "resource": blob},
        *({"type": "image", "data": 5}, {"type": "resource"}, None, "image"),
    ]
    assert list_files(parts) == [
        ResultFile("image-2.png", PDF, "image/png"),
        ResultFile("a.pdf", PDF, "application/pdf"),
    ]
