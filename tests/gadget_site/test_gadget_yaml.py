"""gadget.yaml: its content, and errors that name the line, the key and a valid value."""

from __future__ import annotations

from pathlib import Path

import pytest

from gadget_site.environment import read_settings
from gadget_site.faults import SettingError
from tests.features import feature
from tools.config import Config, ConfigError, read_config
from tools.contract import Environment

WHOLE = """\
tools:
  orchestratorId: north
  default_timeout: 12.5
  maxConcurrentCalls: 4
  log_calls: no
  disabled: [data.archiveAll, web.fetchPage@1.0]
  allow_dynamic_registration: false
  strict_capabilities: false
  featuresByTool:
    search_google: [web]
  plugins: [iban, other.tools]
services:
  google:
    cse: {apiKey: "${SEARCH_KEY}", engine_id: 017:abc}
  github:
    token: gh-${SUFFIX}
  slack: {token: 00123, signingSecret: yes}
"""

WRONG = [
    ("tools:\n  defaultTimeout: 0\n", "line 2: tools.defaultTimeout: input should be greater than 0 (given: 0)"),
    ("tools:\n  default_timout: 3\n", "line 2: unknown key 'tools.default_timout'; known keys: orchestrator_id,"),
    ("tools:\n\n  disabled:\n    - a\n    - [b]\n", "line 5: tools.disabled.1: input should be a valid string"),
    ("tools:\n  disabled: [a]\n  disabled: [b]\n", "line 3: tools.disabled is repeated; it is also in line 2"),
    ("tools:\n  log_calls: perhaps\n", "line 2: tools.log_calls: input should be a valid boolean"),
    ("tools:\n  plugins: iban\n", "line 2: tools.plugins: expected a list, like [a, b] (given: 'iban')"),
    ("tools:\n  plugins: [1]\n", "line 2: tools.plugins.0: input should be a valid string (given: 1)"),
    ("tools:\n  plugins: ['']\n", "line 2: tools.plugins.0: string should have at least 1"),
    ("tools: 3\n", "line 1: tools: input should be a valid dictionary"),
    ("tool:\n  disabled: []\n", "line 1: unknown key 'tool'; known keys: tools, services"),
    ("tools\n", "line 1: expected the keys 'tools:' and 'services:'"),
    ("- tools\n", "line 1: expected the keys 'tools:' and 'services:'"),
    ("tools:\n  disabled: [\n", "line 3: this is not YAML"),
    ("tools: &here\n  disabled: *here\n", "line 2: tools.disabled: write it out; anchors"),
    ("services:\n  slack: token\n", "line 2: services.slack must contain a key with a value"),
    ("services:\n  slack:\n    token: [a]\n", "line 3: services.slack.token must contain a key with a value"),
    ("tools:\n  orchestrator_id: ${NOBODY}\n", "line 2: tools.orchestrator_id needs the environment variable"),
    ("google:\n  token: [a]\n", "line 2: google.token must contain a key with a value"),
    ("google: text\n", "line 1: google needs keys with values"),
    ("services: {slack: {token: a}}\nslack: {token: b}\n", "line 2: slack is set here and under 'services:'"),
    ("services: !!python/object/apply:os.system [ls]\n", "line 1: services needs keys with values"),
]  # fmt: skip


@feature(
    "The toolbox and its settings",
    "`gadget.yaml`, in both spellings, with `${NAME}`",
    "tools/config.py",
)
def test_keys_are_read_in_both_spellings_and_variables_are_substituted() -> None:
    config = read_config(WHOLE, {"SEARCH_KEY": "k-1", "SUFFIX": "77"})
    tools = config.tools
    assert (tools.orchestrator_id, tools.default_timeout, tools.max_concurrent_calls) == (
        "north",
        12.5,
        4,
    )
    assert (tools.log_calls, tools.allow_dynamic_registration, tools.strict_capabilities) == (
        False,
        False,
        False,
    )
    assert tools.disabled == {"data.archiveAll", "web.fetchPage@1.0"}
    assert tools.features_by_tool == {"search_google": {"web"}}
    assert tools.plugins == ("iban", "other.tools")
    assert config.environment.credentials == {
        "google.cse": {"api_key": "k-1", "engine_id": "017:abc"},
        "github": {"token": "gh-77"},
        "slack": {"token": "00123", "signing_secret": "yes"},
    }


@pytest.mark.parametrize(
    "text", ["google: {cse: {apiKey: k-1, engineId: e}}", "google: {api_key: k-1, engine_id: e}"]
)
def test_google_can_be_a_top_level_key(text: str) -> None:
    config = read_config(f"{text}\nservices: {{github: {{token: t}}}}\n", {})
    assert config.services == {
        "google.cse": {"api_key": "k-1", "engine_id": "e"},
        "github": {"token": "t"},
    }


def test_an_unset_variable_disables_only_its_own_service() -> None:
    text = "google:\n  cse: {apiKey: '${A}', engineId: '${B}'}\nservices:\n  github: {token: '${C}', other: '${D}'}\n"
    config = read_config(text, {"A": "a", "B": "b", "C": "c"})
    assert config.services == {"google.cse": {"api_key": "a", "engine_id": "b"}}
    assert config.unset == {"github": ("D",)}
    assert read_config(text, {}).unset == {"google.cse": ("A", "B"), "github": ("C", "D")}


@feature(
    "The toolbox and its settings",
    "Default timeout, parallel calls, log of calls, and the installation's name in "
    "its log, with the documented defaults",
    "tools/config.py",
)
@pytest.mark.parametrize("text", ["", "# nothing\n", "tools:\nservices:\n"])
def test_omitted_keys_have_defaults(text: str) -> None:
    config = read_config(text, {})
    assert config == Config()
    assert (
        config.tools.default_timeout,
        config.tools.max_concurrent_calls,
        config.tools.log_calls,
    ) == (30, 10, True)
    assert config.environment == Environment.empty()


@feature(
    "The toolbox and its settings",
    "A mistake in it stops the start, with line and key in the message",
    "tools/config.py",
)
@pytest.mark.parametrize(("text", "fault"), WRONG)
def test_a_mistake_is_reported_with_its_line_and_key(text: str, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(text, {})
    assert str(caught.value).startswith(fault)


def test_credentials_are_never_printed() -> None:
    config = read_config("services: {github: {token: very-secret}}", {})
    assert "very-secret" not in repr(config) + repr(config.environment)
    with pytest.raises(ConfigError) as caught:
        read_config("services: {github: {token: very-secret, list: [very-secret]}}", {})
    assert "very-secret" not in str(caught.value)


def test_an_invalid_file_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "gadget.yaml").write_text("tools:\n  default_timeout: soon\n")
    with pytest.raises(SettingError) as caught:
        read_settings({"GADGET_DATA_DIR": str(tmp_path)}, tmp_path)
    assert "GADGET_CONFIG: gadget.yaml, line 2: tools.default_timeout: " in str(caught.value)


def test_a_file_next_to_manage_py_is_found_automatically(tmp_path: Path) -> None:
    (tmp_path / "gadget.yaml").write_text("services:\n  github:\n    token: ${TOKEN}\n")
    site = read_settings(
        {"GADGET_DATA_DIR": str(tmp_path), "TOKEN": "from-the-environment"}, tmp_path
    )
    assert site.config.environment.credentials["github"]["token"] == "from-the-environment"
