"""Read the payload of a message, which is JSON or a form, as plain data that every database can
store."""

import json
from typing import Any
from urllib.parse import parse_qsl

from agents.platform.refusals import Invalid
from tools.contract import make_storable
from tools.contract.canonical import storable_json

MAX_FIELDS = 1_000
"""The maximum number of fields in a form."""
FORM = "application/x-www-form-urlencoded"
PAYLOAD_FIELD = "payload"
"""The field in which GitHub, Slack and others send their JSON."""


def read_payload(content_type: str, body: bytes) -> dict[str, Any] | list[Any]:
    """Read the payload; NUL characters and halves of surrogate pairs, which no database stores,
    become U+FFFD.

    A form is read as the JSON in its field `payload`, or else as an object of its fields.

    Args:
        content_type: the value of the header Content-Type.

    Raises:
        Invalid
    """
    is_form = content_type.partition(";")[0].strip().lower() == FORM
    payload = _parse_form(body) if is_form else _parse_json(body)
    if not isinstance(payload, dict | list):
        raise Invalid("body", "the body is neither an object nor a list")
    try:
        storable: dict[str, Any] | list[Any] = make_storable(payload)
        storable_json(storable)
    except (ValueError, RecursionError, TypeError) as error:
        raise Invalid("body", f"the body cannot be stored: {error}") from error
    return storable


def _parse_json(body: bytes | str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Invalid("body", "the body is not valid JSON") from error


def _parse_form(body: bytes) -> Any:
    # Some senders send JSON with their client's default content type.
    if body.lstrip()[:1] in (b"{", b"["):
        return _parse_json(body)
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, strict_parsing=True, max_num_fields=MAX_FIELDS
        )
    except ValueError as error:
        raise Invalid("body", "the body is not a valid form") from error
    if not pairs:
        raise Invalid("body", "the body is empty")
    fields: dict[str, Any] = {}
    for name, value in pairs:
        fields[name] = value if name not in fields else [*_as_list(fields[name]), value]
    text = fields.get(PAYLOAD_FIELD)
    return _parse_json(text) if isinstance(text, str) else fields


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
