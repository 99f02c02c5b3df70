#!/usr/bin/python3 -I
"""Gadget's hook for coding assistants: it holds a tool call until a person has approved it in
Gadget.

An assistant starts it before each tool call, with a description of the call on standard input. It
responds in the assistant's own form: proceed, or denied with the reason. If anything fails, it
blocks with exit code 2. It needs Python 3.9 or later, and no other packages.

    gadget_hook.py                    answer one call; assistants start it like this
    gadget_hook.py check ASSISTANT    check that the hook holds calls and cannot be changed: claude,
                                      codex, gemini, cursor or copilot; with --live, also that the
                                      assistant's own call comes to the hook; with --wait, also that
                                      an approval lets exactly one call through

Its configuration is a JSON file, /etc/gadget/hook.json, which must belong to root: then nothing
from the environment counts. Without that file it is `~/.config/gadget/hook.json` or the one that
AGENT_HOOK_CONFIG names:

    {"url": "https://gadget.example.com", "key": "gadget_agent_…", "timeout_s": 600, "default":
    "ask",
     "rules": [{"tool": "Read|Grep|Glob", "do": "allow"},
               {"tool": "Bash", "input": "git (status|diff)", "do": "allow"}]}

The first matching rule decides. `tool` must match the full name of the tool, and `input` at least
one value of the input, in full; an object has an expression for each field. An `allow` rule must
match every value, except the description next to a command. A command that is not one simple
command is never allowed by its text. `level` is the level of the ask; the default is `destructive`.
A proxy or certificates of your own are named by `proxy` and `ca_file`.
"""

# ruff: noqa: E402 - the environment is dropped before other modules read it

from __future__ import annotations

import os
import sys

MANAGED = "/etc/gadget/hook.json"
"""The configuration of an administrator, where only root can write."""


def is_managed() -> bool:
    """Return True if there is an administrator's configuration, even one that this user cannot
    read."""
    try:
        os.lstat(MANAGED)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def drop_environment() -> None:
    """Clear the environment, which the assistant can set; restart in isolated mode if Python itself
    has read it."""
    os.environ.clear()
    if not sys.flags.isolated:
        os.execv(sys.executable, [sys.executable, "-I", os.path.abspath(__file__)])  # noqa: S606, PTH100 - no imports yet


if __name__ == "__main__" and len(sys.argv) == 1 and is_managed():
    drop_environment()

import contextlib
import hashlib
import json
import re
import shlex
import shutil
import signal
import ssl
import stat
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

try:
    import tomllib
except ImportError:
    tomllib = None  # type: ignore[assignment]

Json = Any
Config = dict[str, Any]

COMMAND = "/usr/bin/python3 -I"
VERDICTS = ("ask", "allow", "deny")
SHELL = ("beforeShellExecution", "afterShellExecution")
MCP = ("beforeMCPExecution", "afterMCPExecution")
CURSOR = (*MCP, "preToolUse", "postToolUse", "postToolUseFailure")
FAILURES = ("PostToolUseFailure", "postToolUseFailure")
STOPPING = [
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)
]
VARIABLES = ("AGENT_HOOK_CONFIG", "AGENT_HOOK_URL", "AGENT_HOOK_KEY")
AFTER = (
    "PostToolUse",
    "AfterTool",
    "postToolUse",
    "afterShellExecution",
    "afterMCPExecution",
    *FAILURES,
)
SERVER_PARTS = ("mcpServers", "mcp_servers", "servers")
FORMS = {
    **dict.fromkeys(("PreToolUse", "PostToolUse", "PostToolUseFailure"), "claude"),
    **dict.fromkeys(("BeforeTool", "AfterTool"), "gemini"),
}
ENDS = ("SessionEnd", "sessionEnd")
BLOCKED, CONFLICT = 2, 409
SHORTEST_MARGIN_S, MARGIN_S, LONGEST_CHECK_S, LONGEST_TIMEOUT_S = 5.0, 15.0, 300.0, 86_400.0
OPEN_S = 24 * 3600
LARGEST_RESPONSE = 1_000_000
LARGEST_INPUT = 4_000_000
MOST_LINKS = 40
SERVED = "/static/clients/gadget_hook.py"
SETTINGS = {
    "claude": (
        "/etc/claude-code/managed-settings.json",
        "/etc/claude-code/managed-settings.d/*.json",
        "~/.claude/settings.json",
        ".claude/settings.json",
        ".claude/settings.local.json",
    ),
    "codex": (
        "/etc/codex/requirements.toml",
        "/etc/codex/config.toml",
        "~/.codex/hooks.json",
        "~/.codex/config.toml",
        ".codex/hooks.json",
        ".codex/config.toml",
        "~/.codex/.env",
    ),
    "gemini": (
        "/etc/gemini-cli/settings.json",
        "~/.gemini/settings.json",
        ".gemini/settings.json",
        "~/.gemini/.env",
        ".gemini/.env",
        "~/.env",
        ".env",
    ),
    "cursor": ("/etc/cursor/hooks.json", "~/.cursor/hooks.json", ".cursor/hooks.json"),
    "copilot": (
        "/etc/github-copilot/policy.d/*.json",
        "~/.copilot/hooks/*.json",
        "~/.copilot/settings.json",
        ".github/hooks/*.json",
        ".github/copilot/settings.json",
        ".github/copilot/settings.local.json",
        ".claude/settings.json",
        ".claude/settings.local.json",
    ),
}
"""Files from which each assistant takes hooks, or variables for them."""
UNSWITCHABLE = (
    "/etc/claude-code/",
    "/etc/codex/requirements.toml",
    "/etc/github-copilot/policy.d/",
)
"""Beginnings of the paths of settings whose hooks no other settings can switch off."""
NEEDS_TRUST = "Codex runs its hooks only after a person has trusted them in the dialog /hooks, anew after each edit"
HOLDING = {
    "claude": (("PreToolUse",),),
    "codex": (("PreToolUse",),),
    "gemini": (("BeforeTool",),),
    "cursor": (("beforeShellExecution", "beforeMCPExecution"), ("preToolUse",)),
    "copilot": (("preToolUse",),),
}
OWN_TOOLS = {
    "claude": (
        "2.1 Agent TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate TodoWrite ToolSearch SendMessage"
        " AskUserQuestion EnterPlanMode ExitPlanMode ReportFindings StructuredOutput"
    ),
    "codex": "0.171 update_plan create_goal get_goal update_goal request_user_input spawn_agent wait_agent close_agent",
    "gemini": "0.61 write_todos update_topic enter_plan_mode exit_plan_mode ask_user invoke_agent complete_task",
    "cursor": "2 TodoWrite Task",
    "copilot": "1.0 update_todo report_intent ask_user exit_plan_mode task task_complete list_agents read_agent",
}
"""The version of each assistant, and its tools that only plan or divide its own work.

Each call of a sub-agent that they start comes to the hook, too.
"""
SERVERS = {
    "claude": ("/etc/claude-code/managed-mcp.json", "~/.claude.json", ".mcp.json"),
    "codex": ("/etc/codex/config.toml", "~/.codex/config.toml", ".codex/config.toml"),
    "gemini": ("/etc/gemini-cli/settings.json", "~/.gemini/settings.json", ".gemini/settings.json"),
    "cursor": ("~/.cursor/mcp.json", ".cursor/mcp.json"),
    "copilot": ("~/.copilot/mcp-config.json", ".mcp.json", ".github/mcp.json", ".vscode/mcp.json"),
}
"""Files in which each assistant finds its MCP servers."""
PROMPT = (
    "This is a check of your settings. Run exactly this shell command once, then stop: {command}"
)
PROGRAMS = {
    "claude": ("claude", "-p"),
    "codex": ("codex", "exec", "--skip-git-repo-check"),
    "gemini": ("gemini", "--allowed-tools", "run_shell_command(echo)", "-p"),
    "cursor": ("cursor-agent", "-p"),
    "copilot": ("copilot", "-p"),
}
"""Commands that give each assistant one task."""
DEFAULT_TIMEOUTS_S = {
    "claude": 600.0,
    "codex": 600.0,
    "gemini": 60.0,
    "cursor": 60.0,
    "copilot": 30.0,
}


COMMANDS = re.compile(r"(?i).*(bash|shell|command|cmd|exec|terminal|(?<!de)script).*")
"""Names of tools that run commands, and of their params."""
_PLAIN = r"[^\s'\"\\;&|<>()$`*?\[\]{}!]"
_PART = rf"""(?:{_PLAIN}|'[^']*'|"(?:[^"$`\\]|\\["\\])*"|\\[^\r\n\t])"""
SIMPLE = re.compile(rf"[ \t]*(?:(?![~#=]){_PART}(?:(?<![=:])~|(?!~){_PART})*(?:[ \t]+|\Z))*")
"""Matches one simple command: words without an expansion, a redirection or a second command."""
ASSIGNMENT = re.compile(r"\w+\+?=")
SHELL_WORDS = re.compile(
    r"[!.{}]|\[\[|alias|builtin|case|command|coproc|do|done|elif|else|esac|eval|exec|fi|for|function|if|in|select|source"
    r"|then|time|trap|until|while"
)
"""First words that are not programs: keywords and builtins, with which a shell can run more than
one command."""
SHELLS = re.compile(
    r"(?:ba|da|a|z|k|mk|pdk|c|tc|fi|r|rba|y)?sh|nu|pwsh|busybox|su|ssh|eval|env|parallel|watch|xargs|script"
)
"""Programs that run one of their arguments as a command."""
PATHS = re.compile(r"(?i).*(path|file|folder|directory|dir)s?(_?name)?")
"""Names of params that contain paths."""
PLAIN_WORD = re.compile(r"[\w@%+=:,./~^-]*")
SEPARATORS = re.compile(r"[;&|<>(){}`$\r\n\"']")
INNER_OPTION = re.compile(r"^\s*(?:--?[\w-]+=|-\w)")
MOST_WORDS, LONGEST_COMMAND = 200, 10_000


class Blocked(Exception):
    """The call must not run; the text says why."""


class Refused(Blocked):
    """Gadget responded with an error."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"Gadget responded with {status}: {detail}")
        self.status = status


# The call, as each assistant describes it


class Call:
    """One tool call: the assistant's form, the event, the tool's name, its input, and the
    session."""

    def __init__(
        self, form: str, event: str, tool: str, given: Json, sent: dict[str, Json]
    ) -> None:
        self.form, self.event, self.tool = form, event, tool
        self.given = given if isinstance(given, dict) else {"value": given}
        self.folder, self.address = (
            str(sent.get("cwd") or ""),
            str(sent.get("url") or "").rstrip("/"),
        )
        self.session = str(
            sent.get("session_id") or sent.get("conversation_id") or sent.get("sessionId") or ""
        )
        self.response = sent.get("tool_response", sent.get("toolResult", sent.get("output")))
        self.action = "assistant." + re.sub(r"[^A-Za-z0-9_.:-]", "_", tool)[:80]
        self.is_command = any(COMMANDS.fullmatch(name) for name in (tool, *map(str, self.given)))
        self.is_served = event in MCP or bool(
            sent.get("mcp_context")
        )  # by an MCP server, which names its tools itself
        self.params = {"tool": tool, "folder": self.folder, "input": self.given}
        known = (
            {"tool": tool, "input": self.given} if event in SHELL else self.params
        )  # Cursor names no folder later
        self.session_key = f"hook:{make_digest(self.session)[:16]}:"
        self.effect_key = self.session_key + make_digest([self.session, self.action, known])[:32]

    @property
    def acting(self) -> dict[str, Json]:
        """The input without the description next to a command, which has no effect."""
        has_command = isinstance(self.given.get("command"), str)
        return {
            name: value
            for name, value in self.given.items()
            if not (has_command and name == "description")
        }

    @property
    def ends_session(self) -> bool:
        return self.event in ENDS

    @property
    def is_over(self) -> bool:
        return self.event in AFTER

    @property
    def has_failed(self) -> bool:
        """True if the assistant reports that the call failed."""
        said = self.response if isinstance(self.response, dict) else {}
        is_good = said.get("resultType", "success") == "success" and not (
            said.get("error") or said.get("is_error")
        )
        return self.event in FAILURES or not is_good


def make_digest(named: Json) -> str:
    text = json.dumps(named, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_call(text: str) -> Call:
    """Parse an assistant's description of a call.

    Raises:
        Blocked: the description has an unknown format.
    """
    try:
        sent = json.loads(text)
    except (ValueError, RecursionError):
        raise Blocked("the input is not JSON") from None
    if not isinstance(sent, dict):
        raise Blocked("the input has an unknown format")
    event = sent.get("hook_event_name")
    is_end = event is None and "toolName" not in sent and {"sessionId", "reason"} <= set(sent)
    if is_end or event in ENDS:
        return Call("", event or ENDS[-1], "", {}, sent)
    if event in FORMS and isinstance(sent.get("tool_name"), str) and "tool_input" in sent:
        form = "codex" if FORMS[event] == "claude" and "turn_id" in sent else FORMS[event]
        return Call(form, event, sent["tool_name"], sent["tool_input"], sent)
    if event in SHELL and isinstance(sent.get("command"), str):
        return Call("cursor", event, "shell", {"command": sent["command"]}, sent)
    if event in CURSOR and "tool_input" in sent:
        return Call(
            "cursor",
            event,
            str(sent.get("tool_name") or "mcp"),
            parse_input(sent["tool_input"]),
            sent,
        )
    if event is None and isinstance(sent.get("toolName"), str) and "toolArgs" in sent:
        over = (
            "postToolUse"
            if "toolResult" in sent
            else "postToolUseFailure"
            if "error" in sent
            else "preToolUse"
        )
        return Call("copilot", over, sent["toolName"], parse_input(sent["toolArgs"]), sent)
    raise Blocked("the input has an unknown format")


def parse_input(given: Json) -> Json:
    """Parse an input that some assistants send as JSON text; other text becomes `{"text": "…"}`."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return {"text": given}


def respond(call: Call, goes_on: bool, reason: str) -> None:
    """Print the response in the assistant's own form."""
    word = "allow" if goes_on else "deny"
    if call.form in ("claude", "codex"):
        if goes_on and call.form == "codex":
            return  # Codex accepts only denials; no output lets the call proceed
        said = {
            "hookEventName": "PreToolUse",
            "permissionDecision": word,
            "permissionDecisionReason": reason,
        }
        print(json.dumps({"hookSpecificOutput": said}))
    elif call.form == "gemini":
        print(json.dumps({"decision": word, "reason": reason}))
    elif call.form == "cursor":
        print(json.dumps({"permission": word, "user_message": reason, "agent_message": reason}))
    else:
        print(json.dumps({"permissionDecision": word, "permissionDecisionReason": reason}))


# The local table


def find_config() -> Path:
    if is_managed():
        return Path(MANAGED)
    return Path(os.environ.get("AGENT_HOOK_CONFIG") or "~/.config/gadget/hook.json").expanduser()


def load_config() -> Config:
    """Load the configuration, and check that it is valid and protected from other users.

    Raises:
        Blocked: it is missing, invalid or not protected.
    """
    path, managed = find_config(), is_managed()
    try:
        status = path.stat()
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Blocked(f"{path} cannot be read: {error}") from None
    closed_to = (
        0o037 if status.st_uid == 0 else 0o077
    )  # the assistant's group may read what only root can change
    if os.name == "posix" and stat.S_IMODE(status.st_mode) & closed_to:
        raise Blocked(
            f"{path} holds a key and can be read by others: chmod 640 if root owns it, else chmod 600"
        )
    if managed and (status.st_uid != 0 or (os.geteuid() != 0 and can_change(path))):
        raise Blocked(f"{path} must belong to root, in a folder where only root can write")
    if not isinstance(config, dict):
        raise Blocked(f"{path} must be a JSON object")
    config = {"url": None, "key": None, **config, **({} if managed else read_variables())}
    check_config(config, path)
    return Config(config)


def read_variables() -> dict[str, str]:
    """Return the address and the key that the environment sets.

    Raises:
        Blocked: it sets only an address, to which the key of the file would be sent.
    """
    url, key = (os.environ.get(name) for name in ("AGENT_HOOK_URL", "AGENT_HOOK_KEY"))
    if url and not key:
        raise Blocked(
            "AGENT_HOOK_URL counts only with AGENT_HOOK_KEY, so that the key of the file goes nowhere else"
        )
    return {name: value for name, value in (("url", url), ("key", key)) if value}


def check_config(config: Config, path: Path) -> None:
    address = urllib.parse.urlsplit(str(config["url"]))
    is_local = address.hostname in ("localhost", "127.0.0.1", "::1")
    if address.scheme != "https" and not (address.scheme == "http" and is_local):
        raise Blocked(f"{path}: url must begin with https://")
    if not isinstance(config["key"], str) or not config["key"].startswith("gadget_agent_"):
        raise Blocked(f"{path}: key must be an agent key")
    if config.get("default", "ask") not in VERDICTS:
        raise Blocked(f"{path}: default must be one of {', '.join(VERDICTS)}")
    timeout_s = config.get("timeout_s", 60)
    is_number = isinstance(timeout_s, (int, float)) and not isinstance(timeout_s, bool)
    if not is_number or not MARGIN_S < timeout_s <= LONGEST_TIMEOUT_S:
        raise Blocked(
            f"{path}: timeout_s must be a number above {MARGIN_S:g}, at most {LONGEST_TIMEOUT_S:g}"
        )
    if not all(
        isinstance(config.get(name, ""), str) for name in ("proxy", "ca_file", "mcp_server")
    ):
        raise Blocked(f"{path}: proxy, ca_file and mcp_server must be texts")
    check_rule_list(config.get("rules", []), path)


def check_rule_list(rules: Json, path: Path) -> None:
    if not isinstance(rules, list):
        raise Blocked(f"{path}: rules must be a list")
    for rule in rules:
        if (
            not isinstance(rule, dict)
            or rule.get("do") not in VERDICTS
            or set(rule) - {"tool", "input", "do", "level"}
        ):
            raise Blocked(
                f"{path}: a rule has only tool, input, level and do; `do` must be ask, allow or deny"
            )
        if problem := find_bad_expression(rule):
            raise Blocked(f"{path}: {problem}")


def find_bad_expression(rule: dict[str, Json]) -> str:
    given = rule.get("input", "")
    try:
        for expression in (
            rule.get("tool", ""),
            *(given.values() if isinstance(given, dict) else [given]),
        ):
            re.compile(expression)
    except (re.error, TypeError, OverflowError, RecursionError) as error:
        return f"a rule has an invalid regular expression: {error}"
    return ""


def find_rule(config: Config, call: Call) -> dict[str, Json]:
    """Return the first rule that matches the call, or the default; always ask if the call may hide
    a denied command."""
    rules = [rule for rule in config.get("rules", []) if names_tool(rule, call.tool)]
    default = {"do": config.get("default", "ask")}
    found = next(
        (dict(rule) for rule in rules if "input" not in rule or matches_input(rule, call)), None
    )
    if found is None:
        found = {"do": "allow"} if is_own_tool(call) or is_at_gadget(config, call) else default
    denials = [rule for rule in rules if rule["do"] == "deny" and "input" in rule]
    if found["do"] == "allow" and any(may_hide(rule, call) for rule in denials):
        return {"do": "ask"}
    return found


def names_tool(rule: dict[str, Json], tool: str) -> bool:
    """Return True if the rule is about this tool, named with dots or, as Gadget serves it, with two
    underscores."""
    prefix = re.match(r"mcp__.+?__|", tool).group()  # type: ignore[union-attr]  # it always matches
    name = tool[len(prefix) :]
    spelled = (tool, prefix + name.replace("__", "."), prefix + name.replace(".", "__"))
    return "tool" not in rule or any(re.fullmatch(rule["tool"], each) for each in spelled)


def is_own_tool(call: Call) -> bool:
    """Return True if the tool only plans or divides the assistant's own work."""
    return not call.is_served and call.tool in OWN_TOOLS.get(call.form, "").split()[1:]


def is_at_gadget(config: Config, call: Call) -> bool:
    """Return True if the call goes to Gadget's own MCP server, which judges it itself."""
    name, address = (
        config.get("mcp_server", "gadget"),
        str(config.get("url", "")).rstrip("/") + "/mcp",
    )
    if not name:
        return False
    if call.form == "cursor":
        return call.event == "beforeMCPExecution" and call.address == address
    tool = r"[A-Za-z][\w.:-]*(__|\.)[\w.:-]+"
    part = re.escape(str(name))
    form = {"gemini": f"mcp_{part}_{tool}", "copilot": f"{part}-{tool}"}.get(
        call.form, f"mcp__{part}__{tool}"
    )
    return bool(re.fullmatch(form, call.tool)) and all(
        each == name and entry == address
        for each, entry in list_servers(call)
        if re.match(rf"{part}(\Z|[_-])", each)
    )


def list_servers(call: Call) -> Iterator[tuple[str, str]]:
    """Yield name and address of each MCP server in the assistant's files; the address may be
    empty."""
    folders = [Path(call.folder), *Path(call.folder).parents] if call.folder else []
    for file in SERVERS.get(call.form, ()):
        is_fixed = file.startswith(("/", "~"))
        for path in (
            [Path(file).expanduser()] if is_fixed else [folder / file for folder in folders]
        ):
            found = read_settings(path)
            projects = found.get("projects")
            inner = projects.values() if isinstance(projects, dict) else ()
            for servers in (
                each.get(part)
                for each in (found, *inner)
                if isinstance(each, dict)
                for part in SERVER_PARTS
            ):
                for name, entry in servers.items() if isinstance(servers, dict) else ():
                    address = (
                        entry.get("httpUrl") or entry.get("url") if isinstance(entry, dict) else ""
                    )
                    yield str(name), str(address or "").rstrip("/")


def matches_input(rule: dict[str, Json], call: Call) -> bool:
    """Return True if the rule matches a value of the input; a rule that allows must match every
    value, because the assistant writes them all."""
    if rule["do"] != "allow":
        given = {
            name: [value, *real_paths(call, name, value)] for name, value in call.given.items()
        }
        return any(
            re.fullmatch(expression, each)
            for expression, each in pair_values(rule, given, spellings_of)
        )
    acting = call.acting
    if isinstance(rule["input"], dict) and set(acting) - set(rule["input"]):
        return False
    pairs = list(pair_values(rule, acting, values_of))
    is_clear = not call.is_command or all(split_simple(each) is not None for _, each in pairs)
    is_clear = is_clear and not any(
        leads_up(each) for name, given in acting.items() for each in paths_of(name, given)
    )
    return (
        is_clear
        and bool(pairs)
        and all(re.fullmatch(expression, each) for expression, each in pairs)
    )


def leads_up(path: str) -> bool:
    """Return True for a path that leads out of the folder with which it begins."""
    return ".." in re.split(r"[/\\\\]", path)


def real_paths(call: Call, name: str, given: Json) -> Iterator[str]:
    """Yield the absolute paths that a field names, from the call's folder, without `..` and without
    links."""
    for each in paths_of(name, given):
        path = os.path.join(call.folder, os.path.expanduser(each))  # noqa: PTH111, PTH118 - it may be any text
        with contextlib.suppress(OSError, ValueError):
            yield from {os.path.normpath(path), os.path.realpath(path)}


def paths_of(name: str, given: Json) -> Iterator[str]:
    """Yield the values of a field that contains paths, by its name."""
    if PATHS.fullmatch(name):
        yield from values_of(given)


def may_hide(rule: dict[str, Json], call: Call) -> bool:
    """Return True if the call has a command that this rule cannot judge, or one that runs what the
    rule denies."""
    if not call.is_command:
        return False
    for expression, each in pair_values(rule, call.acting, values_of):
        words = split_simple(each)
        if words is None or hands_on_unknown(words):
            return True
        if any(re.fullmatch(expression, inner) for inner in list_inner(words)):
            return True
    return False


def hands_on_unknown(words: list[str]) -> bool:
    """Return True if a shell among the words gets an argument that is not a single simple
    command."""
    shell = next(
        (place for place, word in enumerate(words) if SHELLS.fullmatch(word.rpartition("/")[2])),
        len(words),
    )
    return any(
        not PLAIN_WORD.fullmatch(word) and split_simple(word) is None for word in words[shell + 1 :]
    )


def list_inner(words: list[str]) -> Iterator[str]:
    """Yield each command that the words may start, also from within one word, with and without its
    program's folder."""
    inner = [
        INNER_OPTION.sub("", part).split() for word in words for part in SEPARATORS.split(word)
    ]
    inner += [split_simple(word) or [] for word in words]
    for found in (words, *(each for each in inner if len(each) > 1)):
        for start, word in enumerate(found):
            yield " ".join(found[start:])
            yield " ".join([word.rpartition("/")[2], *found[start + 1 :]])


def pair_values(
    rule: dict[str, Json], given: dict[str, Json], list_values: Callable[[Json], Iterator[str]]
) -> Iterator[tuple[str, str]]:
    """Yield each value of the input, after the expression that must match it."""
    fields = (
        rule["input"] if isinstance(rule["input"], dict) else dict.fromkeys(given, rule["input"])
    )
    for name in set(fields) & set(given):
        for each in list_values(given[name]):
            yield str(fields[name]), each


def values_of(given: Json) -> Iterator[str]:
    """Yield each value as text, including numbers, names within objects and empty lists, which have
    an effect, too."""
    if isinstance(given, (dict, list)) and given:
        for child in (*given, *given.values()) if isinstance(given, dict) else given:
            yield from values_of(child)
    else:
        yield given if isinstance(given, str) else json.dumps(given)


def spellings_of(given: Json) -> Iterator[str]:
    """Yield each value, and each simple command without its quotes, its spaces and the folder of
    its program."""
    for each in (*values_of(given), *join_lists(given)):
        yield each
        if words := split_simple(each):
            yield " ".join(words)
            yield " ".join([words[0].rpartition("/")[2], *words[1:]])


def join_lists(given: Json) -> Iterator[str]:
    """Yield each list of texts as one command."""
    if isinstance(given, list) and given and all(isinstance(each, str) for each in given):
        yield " ".join(map(shlex.quote, given))
    elif isinstance(given, (dict, list)):
        for child in given.values() if isinstance(given, dict) else given:
            yield from join_lists(child)


def split_simple(text: str) -> list[str] | None:
    """Return the words of one simple command; None if a shell would see more in it, such as a
    second command."""
    if (
        len(text) > LONGEST_COMMAND
        or not SIMPLE.fullmatch(text)
        or not text.replace("\n", "").replace("\t", "").isprintable()
    ):
        return None
    words = shlex.split(text)
    is_own = bool(words) and (SHELL_WORDS.fullmatch(words[0]) or ASSIGNMENT.match(words[0]))
    return None if is_own or len(words) > MOST_WORDS else words


# Gadget


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A handler that follows no redirect, because one would send the key elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


def build_opener(config: Config) -> urllib.request.OpenerDirector:
    """Build the opener for requests, with the proxy and the certificates that the configuration
    names."""
    handlers: list[urllib.request.BaseHandler] = [NoRedirects()]
    if "proxy" in config:
        handlers.append(
            urllib.request.ProxyHandler({"http": config["proxy"], "https": config["proxy"]})
        )
    if "ca_file" in config:
        context = ssl.create_default_context(cafile=config["ca_file"])
        handlers.append(urllib.request.HTTPSHandler(context=context))
    return urllib.request.build_opener(*handlers)


def send(
    config: Config, method: str, path: str, body: Json = None, wait_s: float = 10.0
) -> dict[str, Json]:
    """Send one request, and return the JSON object of the response.

    Raises:
        Refused: Gadget responded with an error.
        Blocked: Gadget cannot be reached, or its response has an unknown format.
    """
    request = urllib.request.Request(config["url"].rstrip("/") + path, method=method)
    request.add_header("Authorization", "Bearer " + config["key"])
    data = None
    if body is not None:
        data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    try:
        with build_opener(config).open(request, data, timeout=wait_s) as response:
            found = json.loads(response.read(LARGEST_RESPONSE))
    except urllib.error.HTTPError as error:
        raise Refused(error.code, read_detail(error)) from None
    except (OSError, ValueError) as error:
        raise Blocked(f"Gadget cannot be reached: {error}") from None
    if not isinstance(found, dict):
        raise Blocked("Gadget's response has an unknown format")
    return found


def read_detail(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read(10_000))["detail"])
    except (OSError, ValueError, KeyError, TypeError):
        return error.reason


def ask(config: Config, call: Call, level: str) -> dict[str, Json]:
    """Make the ask, or find the open one about the same call."""
    words = call.given.get("description")
    body = {
        "action": call.action,
        "params": call.params,
        "level": level,
        "sentence": str(words)[:2_000] if words else "",
        "effect_key": call.effect_key,
        "audience": "gadget_hook",
        "expires_s": OPEN_S,
    }
    return check_ask(call, send(config, "POST", "/api/asks", body))


def check_ask(call: Call, found: dict[str, Json]) -> dict[str, Json]:
    """Return the response if it is about exactly this call.

    Raises:
        Blocked: it is about another one, or has an unknown format.
    """
    text = json.dumps(call.params, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    if (found.get("action"), found.get("params_digest")) != (call.action, digest):
        raise Blocked("Gadget's response is about a different call")
    if not re.fullmatch(r"\d{1,18}", str(found.get("id"))):
        raise Blocked("Gadget's response has an unknown format")
    return found


def wait_for_decision(
    config: Config, call: Call, found: dict[str, Json], until: float
) -> dict[str, Json]:
    """Poll until a person has decided, or until the monotonic time `until`; return the last
    response."""
    while found.get("status") == "waiting" and (left := until - time.monotonic()) > 1:
        wait_s = min(25.0, left)
        path = f"/api/asks/{found['id']}?wait_s={wait_s:.1f}"
        found = check_ask(call, send(config, "GET", path, wait_s=wait_s + SHORTEST_MARGIN_S))
        if found.get("status") == "waiting":
            time.sleep(
                0.5
            )  # if too many requests are waiting, Gadget responds at once: do not poll in a tight loop
    return found


def decide(config: Config, call: Call) -> tuple[bool | None, str]:
    """Return True if the call may proceed, else False, each with the reason; None if a rule allows
    the call."""
    until = time.monotonic() + float(config.get("timeout_s", 60)) - MARGIN_S
    rule = find_rule(config, call)
    if rule["do"] == "allow":
        return None, ""
    if rule["do"] == "deny":
        return False, "Your team's rules for this assistant forbid it. Do not try again."
    found = wait_for_decision(
        config, call, ask(config, call, rule.get("level", "destructive")), until
    )
    if found.get("status") == "approved":
        redeem(config, call, found)
        return True, f"Approved by {found.get('decided_by')} in Gadget."
    return False, explain(found)


def redeem(config: Config, call: Call, found: dict[str, Json]) -> None:
    """Redeem the receipt, which lets only one call through.

    Raises:
        Blocked: the receipt is not accepted.
    """
    done = check_ask(
        call, send(config, "POST", f"/api/asks/{found['id']}/redeem", {"receipt": found["receipt"]})
    )
    if done.get("status") != "redeemed":
        raise Blocked("Gadget did not accept the receipt")


def explain(found: dict[str, Json]) -> str:
    """Explain why the call does not proceed now."""
    status, where, who = found.get("status"), found.get("url"), found.get("decided_by")
    return {
        "waiting": f"Nobody has decided yet (ask {found['id']}, {where}). Try exactly the same call again later.",
        "denied": f"{who} denied this in Gadget: {found.get('reason') or 'no reason given'}",
        "redeemed": f"This call was let through before, and its outcome is not known yet ({where}). Tell a person.",
        "unknown": f"This call was let through before, and nobody knows its outcome ({where}). Tell a person.",
    }.get(str(status), f"Gadget did not approve this: {status} ({where}).")


def report(config: Config, call: Call) -> None:
    """Report to Gadget that an approved call has ended; a call that needed no ask is not
    reported."""
    if find_rule(config, call)["do"] != "ask":
        return
    found = send(
        config, "GET", f"/api/asks?limit=1&effect_key={urllib.parse.quote(call.effect_key)}"
    ).get("items", [])
    if found and found[0].get("status") == "redeemed":
        body = {
            "outcome": "failed" if call.has_failed else "succeeded",
            "summary": "Reported by the assistant.",
        }
        send(config, "POST", f"/api/asks/{found[0]['id']}/outcome", body)


# Commands


def hold() -> int:
    """Answer one call; block if anything fails, and before the assistant's timeout even if a server
    hangs."""
    try:
        limit_time(find_end_s())
        call = read_call(sys.stdin.buffer.read(LARGEST_INPUT).decode("utf-8"))
        config = load_config()
        if call.ends_session:
            if call.session:
                cancel(config, call.session_key)
            os._exit(0)
        stop_at_signals(config, call)
        if call.is_over:
            report(config, call)
            os._exit(0)
        goes_on, reason = decide(config, call)
        if goes_on is not None:
            respond(call, goes_on, reason)
        sys.stdout.flush()
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - whatever fails here, the call must not run
        block(str(error) if isinstance(error, Blocked) else f"{type(error).__name__}: {error}")
    return BLOCKED


def cancel(config: Config, effects: str) -> None:
    """Cancel the open asks whose effect keys begin like this, because the assistant no longer waits
    for them."""
    send(
        config, "POST", "/api/asks/cancel", {"effect_key_prefix": effects}, wait_s=SHORTEST_MARGIN_S
    )


def stop_at_signals(config: Config, call: Call) -> None:
    """Cancel the ask and block when a signal ends the hook."""

    def stop(*_: Any) -> None:
        for each in STOPPING:
            signal.signal(each, signal.SIG_IGN)
        try:
            if not call.is_over:
                cancel(config, call.effect_key)
        except Blocked:
            pass  # the card, or the session's end, still shows that nobody waits
        finally:
            block("the hook was stopped by a signal")

    for each in STOPPING:
        signal.signal(each, stop)


def find_end_s() -> float:
    """Return the seconds after which the hook blocks, before the assistant's timeout."""
    try:
        return float(load_config().get("timeout_s", 60)) - SHORTEST_MARGIN_S
    except Blocked:
        return SHORTEST_MARGIN_S


def limit_time(end_s: float) -> None:
    """Block after this many seconds: a thread blocks while the network hangs, a signal while a
    regular expression does."""
    late = "Gadget did not respond in time"
    thread = threading.Timer(end_s, block, [late])
    thread.daemon = True
    thread.start()
    for each in STOPPING:
        signal.signal(each, lambda *_: block("the hook was stopped by a signal"))
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda *_: block(late))
        signal.setitimer(signal.ITIMER_REAL, end_s)


def block(why: str) -> None:
    """End this process so that the call does not run."""
    print(f"Blocked by Gadget's hook: {why}", file=sys.stderr)
    sys.stderr.flush()
    os._exit(BLOCKED)


class Findings:
    """The findings of a check, printed as they come."""

    problems = 0
    changeable = 0
    """The number of problems that are files or variables that the assistant can change."""
    is_verified = False
    """True once a call of the assistant itself was held."""

    def judge(self, is_good: bool, good: str, bad: str) -> None:
        """Print the text for a good or a bad finding, and count a bad one as a problem."""
        print(f"ok       {good}" if is_good else f"PROBLEM  {bad}")
        self.problems += not is_good

    def fail(self, text: str) -> None:
        self.judge(is_good=False, good="", bad=text)

    def find_changeable(self, text: str) -> None:
        self.changeable += 1
        self.fail(text)


def check(assistant: str, settings: str | None = None, *, waits: bool, lives: bool = False) -> int:
    """Check everything that the hook needs in order to hold calls; return the number of
    problems."""
    findings = Findings()
    try:
        config = load_config()
        check_rules(config, findings)
        started, used = check_settings(assistant, settings, config, findings)
        check_started(config, started, findings)
        check_owners([*started, find_config(), *used], findings)
        check_environment(assistant, settings, findings)
        check_way(config, findings, waits=waits)
        if lives:
            check_live(assistant, config, findings)
    except Blocked as blocked:
        findings.fail(str(blocked))
    if not findings.is_verified:
        print(
            f"The hook is not verified: no call of the assistant came to it. Run check {assistant} --live."
        )
    if findings.problems > findings.changeable:
        print(f"The check found {findings.problems} problem(s).")
    elif findings.changeable:
        what = "file(s) or variable(s) that it depends on"
        advice = "To enforce it, keep them where only root can change them, and set no variable."
        print(
            f"The hook is only cooperative: this user can change {findings.changeable} {what}. {advice}"
        )
    else:
        print(
            "The check found no problem: this user cannot change the hook, its configuration or the settings."
        )
    return findings.problems


def check_live(assistant: str, config: Config, findings: Findings) -> None:
    """Let the assistant run one harmless command, wait for its ask, and then cancel the ask."""
    token = f"gadget-check-{os.urandom(6).hex()}"
    command = f"echo {token}"
    for tool in ("Bash", "run_shell_command", "shell", "bash"):
        call = Call(assistant, "PreToolUse", tool, {"command": command}, {})
        if find_rule(config, call)["do"] != "ask":
            findings.fail(
                f"a rule of the configuration decides {tool} with {command}, so no ask can come"
            )
            return
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        program = start_assistant(assistant, command, output)
        try:
            found = await_ask(config, token, began + LONGEST_CHECK_S, program)
            if found:
                send(config, "POST", f"/api/asks/{found['id']}/cancel")
                findings.is_verified = True
        finally:
            if program is not None:
                end_program(program)
        output.seek(max(0, output.seek(0, os.SEEK_END) - 500))
        said = output.read().decode("utf-8", "replace").strip()
    findings.judge(
        bool(found),
        f"the assistant's own call was held: ask {found.get('id')}, {found.get('url')}",
        f"no call of the assistant came to Gadget in {time.monotonic() - began:.0f} s. It said: {said or 'nothing'}",
    )


def start_assistant(
    assistant: str, command: str, output: IO[bytes]
) -> subprocess.Popen[bytes] | None:
    """Start the assistant with the task to run the command; if its program is not installed, print
    the task for a person, and return None."""
    name, *arguments = PROGRAMS[assistant]
    path, task = shutil.which(name), PROMPT.format(command=command)
    if path is None:
        print(
            f"         Within {LONGEST_CHECK_S:g} seconds, give your assistant this task: {task}",
            flush=True,
        )
        return None
    print(f"         {name} is asked to run: {command}", flush=True)
    streams: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": output,
        "stderr": subprocess.STDOUT,
    }
    return subprocess.Popen([path, *arguments, task], **streams)


def end_program(program: subprocess.Popen[bytes]) -> None:
    """Give the assistant time to notice the cancelled ask, then end it."""
    try:
        program.wait(10)
    except subprocess.TimeoutExpired:
        program.terminate()
        try:
            program.wait(10)
        except subprocess.TimeoutExpired:
            program.kill()


def await_ask(
    config: Config, token: str, until: float, program: subprocess.Popen[bytes] | None
) -> dict[str, Json]:
    """Return the ask about the command with this token; empty if the assistant ends without one."""
    while time.monotonic() < until:
        has_ended = program is not None and program.poll() is not None
        for found in send(config, "GET", "/api/asks?limit=20").get("items", []):
            if token in json.dumps(found.get("params")):
                return dict(found)
        if has_ended:
            break
        time.sleep(1)
    return {}


def check_rules(config: Config, findings: Findings) -> None:
    """Check that a call which no rule names is held or denied."""
    wide = any(
        rule["do"] == "allow" and not set(rule) & {"tool", "input"}
        for rule in config.get("rules", [])
    )
    findings.judge(
        config.get("default", "ask") != "allow" and not wide,
        "calls that no rule names are not allowed",
        "the configuration allows every call that no rule names",
    )


def check_settings(
    assistant: str, settings: str | None, config: Config, findings: Findings
) -> tuple[list[Path], list[Path]]:
    """Check the entries of the assistant's settings; return the files that they start, and the
    settings themselves."""
    paths = [Path(settings)] if settings else list_settings(assistant)
    events = {event for group in HOLDING[assistant] for event in group}
    before = [each for path in paths for each in list_hooks(path) if each.event in events]
    missing = min(
        (sorted(set(group) - {each.event for each in before}) for group in HOLDING[assistant]),
        key=len,
    )
    findings.judge(
        not missing,
        f"the hook is installed in {before[0].path if before else ''}",
        f"no hook for {' and '.join(missing)} in {', '.join(map(str, paths))}",
    )
    is_fixed = bool(before) and str(before[0].path).startswith(UNSWITCHABLE)
    for path in filter(switches_hooks_off, paths):
        if is_fixed and not str(path).startswith("/etc/"):
            print(f"ok       {path} switches hooks off, but not those of {before[0].path}")
        else:
            findings.fail(f"{path} switches all hooks off")
    ends = {each.event for path in paths for each in list_hooks(path)} & set(ENDS)
    if before and not ends:
        print(
            "note     no event tells the hook that a session ends: its open asks then wait until they expire"
        )
    print(
        f"note     the assistant's own tools are those of {assistant} {OWN_TOOLS[assistant].split()[0]}"
    )
    if assistant == "codex" and before and not is_fixed:
        print(f"note     {before[0].path}: {NEEDS_TRUST}")
    for each in before:
        check_entry(assistant, each, float(config.get("timeout_s", 60)), findings)
    named = list(
        dict.fromkeys(Path(each.file).expanduser().absolute() for each in before if each.file)
    )
    used = list(dict.fromkeys(each.path.absolute() for each in before))
    programs = list(dict.fromkeys(Path(each.words[0]) for each in before if each.is_isolated))
    return named or [Path(__file__).resolve()], [*programs, *used]


def check_entry(assistant: str, each: Installed, own_s: float, findings: Findings) -> None:
    """Check that the entry covers every tool, waits long enough, and starts the hook whatever the
    environment is."""
    unit = 1_000 if assistant == "gemini" else 1
    found_s = DEFAULT_TIMEOUTS_S[assistant] if each.timeout is None else each.timeout / unit
    margin = found_s - (own_s - SHORTEST_MARGIN_S)
    findings.judge(
        found_s >= own_s,
        f"{each.event}: the assistant waits {found_s:g} s, {margin:g} s longer than the hook",
        f"{each.event}: the assistant waits only {found_s:g} s, less than timeout_s ({own_s:g} s)",
    )
    findings.judge(
        each.matcher in (None, "", "*", ".*"),
        f"{each.event}: the matcher covers every tool",
        f"{each.event}: the matcher {each.matcher!r} does not cover every tool",
    )
    if each.is_isolated:
        print(f"ok       {each.event}: the command takes nothing from the environment")
    else:
        example = f"{COMMAND} {each.file or '/usr/local/lib/gadget_hook.py'}"
        findings.find_changeable(
            f"{each.event}: the environment can change what the command starts; use {example}"
        )


def list_settings(assistant: str) -> list[Path]:
    """List the settings files, including every existing file that a pattern such as `*.json`
    matches."""
    found: list[Path] = []
    for path in (Path(each).expanduser() for each in SETTINGS[assistant]):
        found += sorted(path.parent.glob(path.name)) if "*" in path.name else [path]
    return found


def switches_hooks_off(path: Path) -> bool:
    """Return True if the settings switch hooks off, in the form of any of the assistants."""
    found = read_settings(path)
    of_gemini, features = found.get("hooksConfig"), found.get("features")
    is_off = isinstance(of_gemini, dict) and (
        of_gemini.get("enabled") is False or of_gemini.get("disabled")
    )
    is_no_feature = isinstance(features, dict) and False in (
        features.get("hooks"),
        features.get("codex_hooks"),
    )
    return bool(
        found.get("disableAllHooks") or found.get("disabledHooks") or is_off or is_no_feature
    )


def read_settings(path: Path) -> dict[str, Json]:
    """Return the settings of the file; none if there is no such file, or it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.name == ".env":
            return {
                "env": dict(
                    re.findall(r"^[ \t]*(?:export[ \t]+)?(\w+)[ \t]*=(.*)$", text, re.MULTILINE)
                )
            }
        if path.suffix == ".toml":
            return read_toml(text, path)
        found = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read_toml(text: str, path: Path) -> dict[str, Json]:
    """Parse settings in TOML, which needs Python 3.11 or later."""
    if tomllib is None:
        raise Blocked(f"{path} is written in TOML, and only Python 3.11 or later can read it")
    found: dict[str, Json] = tomllib.loads(text)
    policy = found.get("shell_environment_policy")
    given = policy.get("set") if isinstance(policy, dict) else None
    return {**found, "env": given} if isinstance(given, dict) else found


def list_entries(path: Path) -> Iterator[tuple[str, Json, dict[str, Json]]]:
    """Yield event and matcher of each entry of a settings file, and the entry."""
    events = read_settings(path).get("hooks", {})
    for event, groups in events.items() if isinstance(events, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            for entry in group.get("hooks", [group]) if isinstance(group, dict) else ():
                if isinstance(entry, dict):
                    yield event, group.get("matcher"), entry


class Installed:
    """An entry of a settings file that starts this hook."""

    def __init__(self, path: Path, event: str, matcher: Json, entry: dict[str, Json]) -> None:
        self.path, self.event, self.matcher = path, event, matcher
        self.words = split_command(read_command(entry))
        timeout = entry.get("timeout", entry.get("timeoutSec"))
        is_number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
        self.timeout: float | None = timeout if is_number else None
        self.file = next((word for word in self.words if "gadget_hook" in word), "")

    @property
    def is_isolated(self) -> bool:
        """True if neither PATH nor Python's own variables choose what runs."""
        return self.words[1:2] == ["-I"] and all(
            Path(each).is_absolute() for each in (self.words[0], self.file)
        )


def read_command(entry: dict[str, Json]) -> str:
    return " ".join(str(entry.get(name, "")) for name in ("command", "bash")).strip()


def list_hooks(path: Path) -> list[Installed]:
    """List the entries of a settings file that start this hook."""
    return [
        Installed(path, event, matcher, entry)
        for event, matcher, entry in list_entries(path)
        if "gadget_hook" in read_command(entry)
    ]


def split_command(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def check_started(config: Config, files: list[Path], findings: Findings) -> None:
    """Compare the files that the assistant starts with the one that the installation serves."""
    request = urllib.request.Request(config["url"].rstrip("/") + SERVED)
    try:
        with build_opener(config).open(request, timeout=10) as response:
            served = response.read(LARGEST_RESPONSE)
    except (OSError, ValueError) as error:
        findings.fail(f"the file that Gadget serves cannot be read: {error}")
        return
    for file in files:
        compare(file, served, findings)


def compare(file: Path, served: bytes, findings: Findings) -> None:
    what = "the file that Gadget serves"
    try:
        findings.judge(file.read_bytes() == served, f"{file} is {what}", f"{file} is not {what}")
    except OSError as error:
        findings.fail(f"{file} cannot be read: {error}")


def check_owners(files: list[Path], findings: Findings) -> None:
    """Name the files that this user, who also runs the assistant, can change."""
    user = "this user, who also runs the assistant,"
    for path in files:
        if can_change(path):
            findings.find_changeable(f"{user} can change {path}")
        else:
            print(f"ok       {user} cannot change {path}")


def check_environment(assistant: str, settings: str | None, findings: Findings) -> None:
    """Name the variables that replace the configuration, and those that settings give to the
    hook."""
    user = "this user, who also runs the assistant,"
    for name in filter(os.environ.get, VARIABLES):
        if is_managed():
            print(f"ok       {name} is set, and counts for nothing beside {MANAGED}")
        else:
            findings.find_changeable(
                f"{name} comes from the environment, which this user can change"
            )
    for path in [Path(settings)] if settings else list_settings(assistant):
        names = ", ".join(sorted(list_variables(path)))
        if names and can_change(path):
            findings.find_changeable(f"{path} sets {names} for the hook, and {user} can change it")
        elif names:
            print(f"ok       {path} sets {names}, and {user} cannot change it")


def list_variables(path: Path) -> set[str]:
    """Return the variables that a settings file, or an entry in it, sets for the programs that the
    assistant starts."""
    found: set[str] = set()
    for entry in [read_settings(path), *(entry for _, _, entry in list_entries(path))]:
        given = entry.get("env")
        found.update(given if isinstance(given, dict) else ())
    return found


def can_change(path: Path) -> bool:
    """Return True if this user can write the file, or replace it, a folder above it or a link on
    the way to it."""
    stops = list(follow_links(path.absolute()))
    return len(stops) > MOST_LINKS or any(can_replace(each) for each in stops)


def follow_links(path: Path) -> Iterator[Path]:
    """Yield the path, and each one that its links lead to, one link at a time; a loop of links ends
    after MOST_LINKS of them."""
    for _ in range(MOST_LINKS + 1):
        yield path
        links = (each for each in (*reversed(path.parents), path) if read_link(each))
        link = next(links, None)
        if link is None:
            return
        path = link.parent / read_link(link) / path.relative_to(link)


def read_link(path: Path) -> str:
    """Return where a link leads; empty for anything else."""
    try:
        return str(path.readlink())
    except OSError:
        return ""


def can_replace(path: Path) -> bool:
    """Return True if this user can write this file or folder, or replace it or a folder above
    it."""
    user = os.geteuid() if hasattr(os, "geteuid") else None
    if has_power_over(path, user):
        return True
    entry = path
    for folder in path.parents:
        if has_power_over(folder, user) and not is_protected(entry, folder, user):
            return True
        entry = folder
    return False


def is_protected(entry: Path, folder: Path, user: int | None) -> bool:
    """Return True if the folder, such as /tmp, keeps this user from replacing the entry, because
    neither is theirs."""
    try:
        owners = (0, folder.stat().st_uid, entry.lstat().st_uid)
        return bool(folder.stat().st_mode & stat.S_ISVTX) and user not in owners
    except OSError:
        return False


def has_power_over(path: Path, user: int | None) -> bool:
    try:
        return os.access(path, os.W_OK) or path.stat().st_uid == user
    except OSError:
        return False


def check_way(config: Config, findings: Findings, *, waits: bool) -> None:
    """Check the way to Gadget with an ask about a harmless action: cancel the ask or, with `waits`,
    wait for an approval and redeem it."""
    given = {"description": "A test of the hook; nothing runs.", "time": time.time()}
    call = Call("claude", "PreToolUse", "hook_check", given, {})
    found = ask(config, call, "read")
    status, address = found.get("status"), f"ask {found.get('id')}, {found.get('url')}"
    findings.judge(
        status == "waiting",
        f"Gadget holds an ask: {address}",
        f"an ask was {status}, not held: {address}",
    )
    if waits:
        print(f"         Approve it there within {LONGEST_CHECK_S:g} seconds.", flush=True)
        found = wait_for_decision(config, call, found, time.monotonic() + LONGEST_CHECK_S)
        is_approved = found.get("status") == "approved"
        findings.judge(
            is_approved, "a person approved the ask", describe_no_approval(found.get("status"))
        )
    if found.get("status") == "approved":
        check_redemption(config, call, found, findings)
    elif found.get("status") == "waiting":
        done = send(config, "POST", f"/api/asks/{found['id']}/cancel")
        was_cancelled = done.get("status") == "cancelled"
        what = "the ask of this check was"
        findings.judge(
            was_cancelled, f"{what} cancelled", f"{what} not cancelled: it is {done.get('status')}"
        )


def describe_no_approval(status: Json) -> str:
    if status == "waiting":
        return f"nobody decided within {LONGEST_CHECK_S:g} seconds"
    return (
        "a person denied the ask"
        if status == "denied"
        else f"the ask was not approved: it is {status}"
    )


def check_redemption(
    config: Config, call: Call, found: dict[str, Json], findings: Findings
) -> None:
    redeem(config, call, found)
    print("ok       the approval lets one call through")
    try:
        redeem(config, call, found)
        findings.fail("the approval lets a second call through")
    except Refused as refused:
        findings.judge(refused.status == CONFLICT, "a second call is refused", str(refused))
    send(
        config,
        "POST",
        f"/api/asks/{found['id']}/outcome",
        {"outcome": "succeeded", "summary": "A check."},
    )


def main(arguments: list[str]) -> int:
    if not arguments:
        return hold()
    options = [each for each in arguments if each in ("--wait", "--live")]
    named = [each for each in arguments if each not in options]
    if named[:1] == ["check"] and len(named) in (2, 3) and named[1] in SETTINGS:
        return 1 if check(*named[1:], waits="--wait" in options, lives="--live" in options) else 0
    print(__doc__, file=sys.stderr)
    return BLOCKED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
