"""Credentials in tools' contexts: known services have typed fields, the fields of other services
are read by name, and values are never printed."""

import logging
from collections.abc import Mapping

import pytest

from agents.employees.toolboxes import OrganizationCredentials
from tests.features import feature
from tools.config import read_config
from tools.contract import Environment, ErrorCode, Services, ToolContext, ToolError

CREDENTIALS: Mapping[str, Mapping[str, str]] = {
    "google.cse": {
        "api_key": "key-of-google",
        "engine_id": "engine-1",
        "endpoint": "https://proxy.example",
    },
    "github": {"token": "token-of-github"},
    "slack": {"token": "token-of-slack", "signing_secret": "signing-of-slack"},
    "post": {"token": "token-of-post"},
}


@feature(
    "The toolbox and its settings",
    "Credentials of Google search, GitHub and Slack are typed fields, and others are read by name",
    "tools/contract/services.py",
)
def test_known_services_have_typed_fields_in_the_context_of_a_call() -> None:
    context = ToolContext(1, credentials=CREDENTIALS)
    assert context.services.google_cse.api_key == "key-of-google"
    assert context.services.google_cse.engine_id == "engine-1"
    assert context.services.google_cse.endpoint == "https://proxy.example"
    assert context.services.github.token == "token-of-github"
    assert context.services.slack.token == "token-of-slack"
    assert context.services.slack.signing_secret == "signing-of-slack"
    assert context.credentials["post"]["token"] == "token-of-post"


def test_the_configuration_file_gives_the_same_fields() -> None:
    text = 'services:\n  google: {cse: {apiKey: a-key, engineId: an-engine}}\n  slack: {signingSecret: "${SECRET}"}\n'
    services = Services(read_config(text, {"SECRET": "a-secret"}).environment.credentials)
    assert (services.google_cse.api_key, services.google_cse.engine_id) == ("a-key", "an-engine")
    assert (services.slack.token, services.slack.signing_secret) == ("", "a-secret")


def test_unset_fields_are_empty() -> None:
    services = ToolContext(1).services
    assert (services.google_cse.api_key, services.github.token, services.slack.signing_secret) == (
        "",
        "",
        "",
    )


def test_an_account_that_cannot_be_decrypted_is_reported() -> None:
    services = Services(
        OrganizationCredentials({"github": {"token": "a-token"}}, frozenset({"slack"}))
    )
    assert services.github.token == "a-token"
    with pytest.raises(ToolError) as caught:
        _ = services.slack.token
    assert caught.value.code is ErrorCode.UNAUTHORIZED


def test_values_are_never_printed_or_logged(caplog: pytest.LogCaptureFixture) -> None:
    context, environment = ToolContext(1, credentials=CREDENTIALS), Environment(CREDENTIALS)
    services = context.services
    printed = [context, environment, services, services.google_cse, services.github, services.slack]
    logging.getLogger("plugin").warning("Using %r and %s", printed, printed)
    text = f"{caplog.text} {printed!r} {'; '.join(str(each) for each in printed)}"
    assert "GoogleSearchAccount()" in text
    values = {value for fields in CREDENTIALS.values() for value in fields.values()}
    assert not [value for value in values if value in text]
