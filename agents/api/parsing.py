"""Reads request bodies strictly: JSON in which no key stands twice and every number is one."""

import json
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from ninja.parser import Parser


class StrictParser(Parser):
    """Refuses what the model's arguments are refused for too, so that what is read is what was written."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        """The body's value.

        Raises:
            ValueError: it is not JSON; the text says where.
            RequestDataTooBig: it came in pieces that are too large together.
        """
        if len(request.body) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise RequestDataTooBig
        value: dict[str, Any] = json.loads(
            request.body, object_pairs_hook=_without_doubles, parse_constant=_no_constant
        )
        return value


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} stands twice")
        found[key] = value
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")
