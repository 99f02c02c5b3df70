"""Rules for commands: a denied command is recognized in other spellings, and a command that may
hide one needs approval."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from types import ModuleType
from typing import Any

import pytest

from tests.clients.test_reading import CLAUDE
from tests.clients.test_table import find
from tests.features import feature

DENY: dict[str, Any] = {"tool": "Bash", "input": "rm .*|curl .*", "do": "deny"}
ALLOW: dict[str, Any] = {"tool": "Bash", "do": "allow"}
SPELLED = [
    "rm -rf /",
    "  rm\t-rf   /",
    "r\\m -rf /",
    "'rm' -rf /",
    'r"m" "-rf" /',
    "''rm -rf /",
    "/bin/rm -rf /",
    "'/usr/bin/'rm -rf /",
    "rm -rf '/a b' # not a comment of this rule",
]
HIDDEN = [
    "true; rm -rf /",
    "true;rm -rf /",
    "true && rm -rf /",
    "true || rm -rf /",
    "true & rm -rf /",
    "true | rm -rf /",
    "true\nrm -rf /",
    "true\r\nrm -rf /",
    "echo `rm -rf /`",
    "echo $(rm -rf /)",
    'echo "$(rm -rf /)"',
    'echo "`rm -rf /`"',
    "rm${IFS}-rf${IFS}/",
    "$X -rf /",
    "{rm,-rf,/}",
    "/bin/r? -rf /",
    "/bin/r* -rf /",
    "/bin/[r]m -rf /",
    "(rm -rf /)",
    "{ rm -rf /; }",
    "! rm -rf /",
    "X=1 rm -rf /",
    "X+=1 rm -rf /",
    "time rm -rf /",
    "eval rm -rf /",
    "eval 'r''m -rf /'",
    "exec rm -rf /",
    "command rm -rf /",
    "builtin command rm -rf /",
    "if true; then rm -rf /; fi",
    "while rm -rf /; do :; done",
    "cat <<X\n$(rm -rf /)\nX",
    "cat <<< $(rm -rf /)",
    "true <(rm -rf /)",
    "true > /etc/passwd",
    "true 2>&1",
    "$'\\x72m' -rf /",
    '$"rm" -rf /',
    "r\\\nm -rf /",
    '"r\\\nm" -rf /',
    "~/rm -rf /",
    "=rm -rf /",
    "true #\nrm -rf /",
    "true 'unclosed",
    'true "unclosed',
    "true \\",
    "true \u2028rm -rf /",
    "rm\u00a0-rf /",
    "\u202emr -rf /",
    "r\u200bm -rf /",
    "true\x00; rm",
    "true\x1b[2K",
    "sudo rm -rf /",
    "env rm -rf /",
    "nohup nice rm -rf /",
    "bash -c 'rm -rf /'",
    "xargs -I x rm -rf x",
    "find / -exec rm x",
    f"{'nohup ' * 300}rm -rf /",
]
NESTED = [
    "env /bin/rm -rf /",
    "sudo /usr/bin/'rm' -rf /",
    "env -S'rm -rf /'",
    "env '--split-string=rm -rf /'",
    "bash -c 'true; rm -rf /'",
    "bash -c 'true\nrm -rf /'",
    "/bin/sh -c 'true && /bin/rm -rf /'",
    "nice sh -c '(rm -rf /)'",
    "bash -c 'r\\m -rf /'",
    "bash -c '$(printf rm) -rf /'",
    "bash -c 'X=1 rm -rf /'",
    "git -c 'alias.x=!true; rm -rf /' x",
    "python3 -c 'import os; os.system(\"rm -rf /\")'",
]
HARMLESS = [
    "ls",
    "git status",
    "git commit -m 'Fix; all | of $it (really)'",
    'git commit -m "Zwölf Änderungen"',
    "git log HEAD~1 --format=%h",
    "make test ARGS=tests/runs",
    "python -m pytest tests/a.py::test_b",
    "echo it\\'s",
    "git commit -m 'One\n\nTwo'",
    "echo a#b",
    "",
]


def find_command(hook: ModuleType, rules: list[dict[str, Any]], command: Any, **more: Any) -> str:
    return find(hook, rules, "Bash", {"command": command, **more})


@pytest.mark.parametrize("command", SPELLED)
def test_a_denied_command_is_denied_in_every_spelling_or_asked_about_if_it_contains_a_hash(
    hook: ModuleType, command: str
) -> None:
    assert find_command(hook, [DENY, ALLOW], command) in (
        ["ask", "deny"] if "#" in command else ["deny"]
    )


@feature(
    "Agents elsewhere",
    "The hook asks about every command that may hide a denied one",
    "static/clients/gadget_hook.py",
)
@pytest.mark.parametrize("command", [*HIDDEN, *NESTED])
@pytest.mark.parametrize(
    "rules",
    [
        [DENY, ALLOW],
        [ALLOW, DENY],
        [DENY, {"do": "allow"}],
        [DENY, {"tool": "Bash", "input": "(?s).*", "do": "allow"}],
    ],
)
def test_a_command_that_may_hide_a_denied_command_is_never_allowed(
    hook: ModuleType, rules: list[dict[str, Any]], command: str
) -> None:
    assert find_command(hook, rules, command) in ("ask", "deny")
    assert find_command(hook, rules, "ls", then=command) in ("ask", "deny")
    assert find_command(hook, rules, ["sh", "-c", command]) in ("ask", "deny")


def test_a_default_of_allow_does_not_cover_a_denied_command_after_another(
    hook: ModuleType,
) -> None:
    call = hook.read_call(json.dumps({**CLAUDE, "tool_input": {"command": "true; rm x"}}))
    assert hook.find_rule({"rules": [DENY], "default": "allow"}, call)["do"] == "ask"


@pytest.mark.parametrize("command", HARMLESS)
def test_one_simple_command_can_be_allowed_although_another_is_denied(
    hook: ModuleType, command: str
) -> None:
    assert find_command(hook, [DENY, ALLOW], command) == "allow"
    assert (
        find_command(hook, [DENY, ALLOW], command, description="It's (all) fine; really") == "allow"
    )


@pytest.mark.parametrize(
    "command", [*HIDDEN[:-8], "git status; id", "git status\nid", "git diff $(id)"]
)
def test_a_broad_expression_allows_only_one_simple_command(hook: ModuleType, command: str) -> None:
    rules = [{"tool": "Bash", "input": "(?s).*", "do": "allow"}]
    assert find_command(hook, rules, "git status") == "allow"
    assert find_command(hook, rules, command) == "ask"


def test_a_whole_tool_can_be_allowed_if_none_of_the_rules_is_about_commands(
    hook: ModuleType,
) -> None:
    assert find_command(hook, [ALLOW], "true; ls") == "allow"
    assert find(hook, [DENY, {"do": "allow"}], "Edit", {"new_string": "a; b"}) == "allow"


def test_a_list_of_words_is_treated_as_one_command(hook: ModuleType) -> None:
    assert find_command(hook, [DENY, ALLOW], ["rm", "-rf", "/"]) == "deny"
    assert find_command(hook, [DENY, ALLOW], [["/bin/rm", "-rf", "/"]]) == "deny"
    assert find_command(hook, [DENY, ALLOW], ["ls", "-la"]) == "allow"


class TestOtherValuesOfACommand:
    RULE = {"tool": "Bash", "input": "ls|[0-4]", "do": "allow"}

    @feature(
        "Agents elsewhere",
        "A rule of the hook that allows a call must match all of its values",
        "static/clients/gadget_hook.py",
    )
    @pytest.mark.parametrize(
        "value",
        [
            5,
            5.0,
            -1,
            True,
            False,
            None,
            [],
            {},
            [5],
            [["ls", 5]],
            {"a": "ls"},
            {"ls": 5},
            {"ls": {"a": 1}},
            "",
        ],
    )
    def test_must_match_even_if_they_are_not_text(self, hook: ModuleType, value: Any) -> None:
        assert find_command(hook, [self.RULE], "ls", more=value) == "ask"

    @pytest.mark.parametrize("value", [4, "4", [4, "ls"], {"ls": 4}, {"ls": ["ls", {"ls": 0}]}])
    def test_are_allowed_if_they_match(self, hook: ModuleType, value: Any) -> None:
        assert find_command(hook, [self.RULE], "ls", more=value) == "allow"

    @pytest.mark.parametrize("value", [5, "5", [5], {"a": {"b": [5]}}])
    def test_are_covered_by_a_denial(self, hook: ModuleType, value: Any) -> None:
        assert find(hook, [{"input": "5", "do": "deny"}], "pay", {"amount": value}) == "deny"


class TestFieldsOfARule:
    RULE = {
        "tool": "Bash",
        "input": {"command": "git (status|diff)", "timeout": "[0-9]+"},
        "do": "allow",
    }

    @pytest.mark.parametrize(
        ("given", "verdict"),
        [
            ({"command": "git status"}, "allow"),
            ({"command": "git status", "timeout": 5000, "description": "Look; then go"}, "allow"),
            ({"command": "git status", "timeout": "git diff"}, "ask"),
            ({"command": "5000"}, "ask"),
            ({"command": "git status", "sandbox": False}, "ask"),
            ({}, "ask"),
        ],
    )
    def test_are_allowed_only_if_each_matches_its_own_expression(
        self, hook: ModuleType, given: Any, verdict: str
    ) -> None:
        assert find(hook, [self.RULE], "Bash", given) == verdict

    def test_are_the_only_fields_that_a_denial_checks(self, hook: ModuleType) -> None:
        rules: list[dict[str, Any]] = [
            {"input": {"path": "/etc/.*"}, "do": "deny"},
            {"do": "allow"},
        ]
        assert find(hook, rules, "Edit", {"path": "/etc/passwd"}) == "deny"
        assert find(hook, rules, "Edit", {"path": "a", "text": "/etc/passwd"}) == "allow"


PIECES = [
    *" \t'\"\\;&|<>()$`*?[]{}~#!=:\n",
    "a",
    "b",
    "if",
    "-x",
    "=",
    "'c d'",
    '"e f"',
    "\\ ",
    "ä",
    "é",
    "%",
    "^",
    "1",
]
SHOW = 'probe() { printf "%s\\0" "$@"; }; for text in "$@"; do eval "probe $text" 2>/dev/null; printf "\\1\\0"; done'


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_a_command_is_split_into_the_same_words_as_in_a_real_shell(
    hook: ModuleType, shell: str
) -> None:
    chance = random.Random(37)
    texts = ["".join(chance.choices(PIECES, k=chance.randint(1, 12))) for _ in range(20_000)]
    read = {
        text: words for text in texts if (words := hook.split_simple(f"probe {text}")) is not None
    }
    assert len(read) > 300
    done = subprocess.run(
        [str(shutil.which(shell)), "-c", SHOW, shell, *read], capture_output=True, check=True
    )
    seen = done.stdout.decode().split("\1\0")[:-1]
    expected = ["".join(f"{word}\0" for word in words[1:] or [""]) for words in read.values()]
    assert seen == expected


def test_a_long_text_is_parsed_quickly_enough(hook: ModuleType) -> None:
    for text in (
        "a" * 500_000,
        "'" * 500_001,
        "a " * 250_000,
        '"\\' * 200_000,
        "\\a" * 200_000,
        "=~" * 200_000,
    ):
        hook.split_simple(text)
