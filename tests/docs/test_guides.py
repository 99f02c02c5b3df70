"""The examples on the pages under docs/ work as printed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature

from tools.config import ToolSettings, read_config

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
EXAMPLE = DOCS.parent / "tests" / "tools" / "plugins" / "example_package"
"""The package that the guide to plugins shows, with the test that the guide runs."""
PAGES_WITH_CODE = [
    "../README.md",
    "write-a-tool.md",
    "test-a-tool.md",
    "permissions.md",
    "standing-grants.md",
    "approval-rules.md",
    "provenance.md",
    "connect-an-api.md",
    "connect-an-mcp-server.md",
    "connect-an-agent.md",
    "write-a-plugin.md",
]
SERVERS = ["webhooks.md"]
"""Pages whose code runs until it is stopped; each of them has a separate test."""


def blocks(page: str, language: str) -> list[str]:
    """Return the texts of all code blocks in this language."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found: list[str] = re.findall(
        rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL
    )
    return found


@pytest.mark.parametrize("page", PAGES_WITH_CODE)
def test_the_code_of_a_page_runs_as_a_plain_script(page: str, tmp_path: Path) -> None:
    code = "\n\n".join(blocks(page, "python"))
    assert "assert " in code
    script = tmp_path / "copied.py"
    script.write_text(code, encoding="utf-8")
    folders = os.pathsep.join([str(DOCS.parent), str(EXAMPLE)])
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": folders}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def receipt_check() -> dict[str, Any]:
    """Return the guide's definitions for checking receipts: the function, and its example."""
    found: dict[str, Any] = {}
    for code in blocks("connect-an-agent.md", "python"):
        exec(code, found)
    return found


def forge(receipt: str, **claims: object) -> str:
    """Change the claims and keep the signature."""
    head, body, signature = receipt.split(".")
    stored = json.loads(urlsafe_b64decode(body + "=="))
    changed = urlsafe_b64encode(json.dumps(stored | claims).encode()).decode().rstrip("=")
    return f"{head}.{changed}.{signature}"


@pytest.mark.parametrize(
    ("wrong", "refused"),
    [
        ({"params": {"version": "1.4.3"}}, ValueError),
        ({"now": 1_795_003_600}, ValueError),
        ({"iss": "https://other.example.com"}, ValueError),
        ({"org": "globex"}, ValueError),
        ({"action": "deploy.staging"}, ValueError),
        ({"level": "write"}, ValueError),
        ({"aud": "other"}, ValueError),
        ({"forged": {"org": "globex"}, "org": "globex"}, InvalidSignature),
        ({"forged": {}}, InvalidSignature),
        ({"keys": []}, StopIteration),
    ],
)
def test_the_documented_receipt_check_refuses_bad_receipts(
    receipt_check: dict[str, Any], wrong: dict[str, Any], refused: type[Exception]
) -> None:
    right = {"params": {"version": "1.4.2"}, "now": 1_795_000_001, "keys": receipt_check["keys"]}
    receipt = receipt_check["receipt"]
    verify = receipt_check["verify_receipt"]
    assert verify(receipt, **right, **receipt_check["known"])["decision"] == "approved"
    changed = {**right, **receipt_check["known"], **wrong}
    if "forged" in changed:
        receipt = forge(receipt, **changed.pop("forged"))
    with pytest.raises(refused):
        verify(receipt, **changed)


def test_every_page_with_code_is_tested() -> None:
    found = {
        page.relative_to(DOCS).as_posix()
        for page in DOCS.rglob("*.md")
        if "```python" in page.read_text(encoding="utf-8")
    }
    assert {"../README.md", *found} == {*PAGES_WITH_CODE, *SERVERS}


def test_the_documented_gadget_yaml_shows_every_tool_setting_with_its_default() -> None:
    (text,) = blocks("settings.md", "yaml")
    names = re.findall(r"\$\{(\w+)\}", text)
    config = read_config(text, dict.fromkeys(names, "a-value"))
    assert set(config.tools.model_fields_set) == set(ToolSettings.model_fields)
    assert set(config.services) == {"google.cse", "github"}
    shown = config.tools.model_dump(exclude={"disabled", "features_by_tool"})
    assert shown == ToolSettings().model_dump(exclude={"disabled", "features_by_tool"}), (
        "the defaults are shown"
    )
