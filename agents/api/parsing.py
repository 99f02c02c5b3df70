"""Strict parsing of request bodies: JSON without duplicate keys, NaN and Infinity."""

import json
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from ninja.parser import Parser

from tools.contract.canonical import refuse_constant, refuse_duplicates


class StrictParser(Parser):
    """A parser that is as strict as the parser of the model's arguments: it never silently drops a
    part of a body."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        """Return the value of the body.

        Raises:
            ValueError: the body is not JSON; the message says where.
            RequestDataTooBig: the body is too large; Django itself does not check a body that is
                sent in chunks.
        """
        if len(request.body) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise RequestDataTooBig
        value: dict[str, Any] = json.loads(
            request.body, object_pairs_hook=refuse_duplicates, parse_constant=refuse_constant
        )
        return value
