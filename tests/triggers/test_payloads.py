"""The payload of a message: it is sent as JSON or as a form, and broken characters are replaced."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from agents.platform.refusals import Invalid
from agents.runs.models import Run
from agents.triggers.models import Trigger
from agents.triggers.payloads import FORM, read_payload
from tests.features import feature
from tests.triggers.conftest import DOWN, sign

FORM_OF_GITHUB = urlencode({"payload": json.dumps(DOWN)}).encode()


@feature(
    "Agents elsewhere",
    "Messages sent as forms, and messages with half surrogate pairs",
    "agents/triggers/payloads.py",
)
@pytest.mark.django_db(transaction=True)
def test_a_form_from_github_starts_the_same_run_as_the_json_message(trigger: Trigger) -> None:
    def post(body: bytes, content_type: str) -> int:
        path = f"/hooks/{trigger.public_id}"
        return (
            Client()
            .post(path, body, content_type=content_type, headers=sign(body, "d1"))
            .status_code
        )

    assert post(FORM_OF_GITHUB, FORM) == 202
    run = Run.objects.get()
    assert post(FORM_OF_GITHUB, f"{FORM}; charset=utf-8") == 202
    assert post(json.dumps(DOWN).encode(), "application/json") == 202
    assert Run.objects.get() == run, "all three have the id of one delivery"
    assert post(FORM_OF_GITHUB.replace(b"payload", b"payload=%7B&x"), FORM) == 422


@pytest.mark.parametrize(
    ("body", "payload"),
    [
        (FORM_OF_GITHUB, DOWN),
        (
            b"command=%2Fdeploy&text=now+please&token=",
            {"command": "/deploy", "text": "now please", "token": ""},
        ),
        (b"a=1&a=2&a=3", {"a": ["1", "2", "3"]}),
        (b'{"a": 1}', {"a": 1}),
        (b"name=%F0%9F%98%80", {"name": "\U0001f600"}),
        (b"payload=[1]&other=x", [1]),
    ],
)
def test_a_form_is_parsed(body: bytes, payload: Any) -> None:
    assert read_payload(FORM, body) == payload


@pytest.mark.parametrize(
    "body",
    [b"", b"payload=", b"payload=%7B", b"payload=7", b"%FF=\xff", b"&".join([b"a=1"] * 2_000)],
)
def test_a_form_without_a_usable_payload_is_refused(body: bytes) -> None:
    with pytest.raises(Invalid):
        read_payload(FORM, body)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('{"a": "cut \\ud83d"}', {"a": "cut \ufffd"}),
        ('{"a": "\\udc00 tail"}', {"a": "\ufffd tail"}),
        ('{"a": "nul \\u0000"}', {"a": "nul \ufffd"}),
        ('{"\\ud83d": [{"b": "\\ud83d"}]}', {"\ufffd": [{"b": "\ufffd"}]}),
        ('{"a": "whole \\ud83d\\ude00"}', {"a": "whole \U0001f600"}),
    ],
)
def test_half_surrogates_are_replaced(text: str, read: Any) -> None:
    assert read_payload("application/json", text.encode()) == read
    assert read_payload(FORM, urlencode({"payload": text}).encode()) == read


@pytest.mark.parametrize(
    "body", [b"7", b"null", b'"text"', b"{", b"", b'{"a": NaN}', b"[" * 200 + b"]" * 200]
)
def test_a_json_body_other_than_a_valid_object_or_list_is_refused(body: bytes) -> None:
    with pytest.raises(Invalid):
        read_payload("application/json", body)
