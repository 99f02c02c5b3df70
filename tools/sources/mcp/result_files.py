"""Images, sounds and blobs in a server's raw response, as files of the result."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from mimetypes import guess_extension
from typing import Any

from tools.contract import ResultFile


def list_files(content: Any) -> list[ResultFile]:
    """List the parts of a response that are files; a part without valid base64 is skipped."""
    return list(_find_files(content if isinstance(content, list) else [content]))


def _find_files(parts: list[Any]) -> Iterator[ResultFile]:
    for number, part in enumerate(parts, start=1):
        if not isinstance(part, Mapping):
            continue
        kind = part.get("type")
        inner = (
            part.get("resource")
            if kind == "resource"
            else part
            if kind in ("image", "audio")
            else None
        )
        if not isinstance(inner, Mapping):
            continue
        data, media_type = (
            inner.get("blob" if kind == "resource" else "data"),
            str(inner.get("mimeType") or ""),
        )
        name = (
            str(inner.get("uri") or "").rstrip("/").rpartition("/")[2] if kind == "resource" else ""
        )
        try:
            content = base64.b64decode(data, validate=True) if isinstance(data, str) else b""
        except (binascii.Error, ValueError):
            continue
        if content:
            yield ResultFile(
                name or f"{kind}-{number}{_find_ending(media_type)}", content, media_type
            )


def _find_ending(media_type: str) -> str:
    return guess_extension(media_type.partition(";")[0].strip()) or ""
