#!/usr/bin/env python3
"""Gadget's hook for coding assistants: it holds a tool call until a person has approved it in Gadget.

An assistant starts it before each tool call, with a description of the call on standard input. It answers in the
assistant's own form: go on, or denied and why. Whatever goes wrong, it blocks with exit code 2. It needs Python 3.9 and
nothing else.

    gadget_hook.py                    answer one call; assistants start it like this
    gadget_hook.py check ASSISTANT    check that the hook holds calls and cannot be changed: claude, codex,
                                      gemini, cursor or copilot; with --wait, also that an approval lets
                                      exactly one call through

Its configuration is a JSON file, `~/.config/gadget/hook.json` or the one that AGENT_HOOK_CONFIG names:

    {"url": "https://gadget.example.com", "key": "gadget_agent_…", "timeout_s": 600, "default": "ask",
     "rules": [{"tool": "Read|Grep|Glob", "do": "allow"},
               {"tool": "Bash", "input": "git (status|diff)", "do": "allow"}]}

The first matching rule decides. `tool` must match the full name of the tool, and `input` at least one string of the
input, in full. An `allow` rule must match every string, except the description next to a command. `level` is the level
of the ask; the default is `destructive`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import signal
import stat
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = Any
Config = dict[str, Any]

VERDICTS = ("ask", "allow", "deny")
SHELL = ("beforeShellExecution", "afterShellExecution")
CURSOR = ("beforeMCPExecution", "afterMCPExecution", "preToolUse", "postToolUse", "postToolUseFailure")
FAILURES = ("PostToolUseFailure", "postToolUseFailure")
AFTER = ("PostToolUse", "AfterTool", "postToolUse", "afterShellExecution", "afterMCPExecution", *FAILURES)
BLOCKED, CONFLICT = 2, 409
SHORTEST_MARGIN_S, MARGIN_S, LONGEST_CHECK_S, LONGEST_TIMEOUT_S = 5.0, 15.0, 300.0, 86_400.0
OPEN_S = 24 * 3600
LARGEST_ANSWER = 1_000_000
LARGEST_INPUT = 4_000_000
MOST_LINKS = 40
SERVED = "/static/clients/gadget_hook.py"
SETTINGS = {
    "claude": (
        "/etc/claude-code/managed-settings.json",
        "~/.claude/settings.json",
        ".claude/settings.json",
        ".claude/settings.local.json",
    ),
    "codex": ("~/.codex/hooks.json", ".codex/hooks.json"),
    "gemini": ("~/.gemini/settings.json", ".gemini/settings.json"),
    "cursor": ("~/.cursor/hooks.json", ".cursor/hooks.json"),
    "copilot": ("~/.copilot/hooks.json", ".github/hooks/gadget.json"),
}
HOLDING = {
    "claude": (("PreToolUse",),),
    "codex": (("PreToolUse",),),
    "gemini": (("BeforeTool",),),
    "cursor": (("beforeShellExecution", "beforeMCPExecution"), ("preToolUse",)),
    "copilot": (("preToolUse",),),
}
DEFAULT_TIMEOUTS_S = {"claude": 600.0, "codex": 600.0, "gemini": 60.0, "cursor": 60.0, "copilot": 30.0}


class Blocked(Exception):
    """The call must not run; the text says why."""


class Refused(Blocked):
    """Gadget answered with an error."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"Gadget answered {status}: {detail}")
        self.status = status


# The call, as each assistant describes it


class Call:
    """One tool call: its assistant's form, the event, the tool's name, its input, and who asks."""

    def __init__(self, form: str, event: str, tool: str, given: Json, sent: dict[str, Json]) -> None:
        self.form, self.event, self.tool = form, event, tool
        self.given = given if isinstance(given, dict) else {"value": given}
        self.folder = str(sent.get("cwd") or "")
        self.session = str(sent.get("session_id") or sent.get("conversation_id") or sent.get("sessionId") or "")
        self.response = sent.get("tool_response", sent.get("toolResult", sent.get("output")))
        self.action = "assistant." + re.sub(r"[^A-Za-z0-9_.:-]", "_", tool)[:80]
        self.params = {"tool": tool, "folder": self.folder, "input": self.given}
        known = {"tool": tool, "input": self.given} if event in SHELL else self.params  # Cursor names no folder later
        named = json.dumps([self.session, self.action, known], sort_keys=True, ensure_ascii=False)
        self.effect_key = "hook:" + hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:48]

    @property
    def is_over(self) -> bool:
        return self.event in AFTER

    @property
    def has_failed(self) -> bool:
        """True if the assistant says so."""
        said = self.response if isinstance(self.response, dict) else {}
        is_good = said.get("resultType", "success") == "success" and not (said.get("error") or said.get("is_error"))
        return self.event in FAILURES or not is_good


def read_call(text: str) -> Call:
    """Return the call that an assistant describes."""
    try:
        sent = json.loads(text)
    except (ValueError, RecursionError):
        raise Blocked("the input is not JSON") from None
    if not isinstance(sent, dict):
        raise Blocked("the input has an unknown format")
    event = sent.get("hook_event_name")
    if (
        event in ("PreToolUse", "PostToolUse", "PostToolUseFailure")
        and isinstance(sent.get("tool_name"), str)
        and "tool_input" in sent
    ):
        return Call("codex" if "turn_id" in sent else "claude", event, sent["tool_name"], sent["tool_input"], sent)
    if event in ("BeforeTool", "AfterTool") and isinstance(sent.get("tool_name"), str) and "tool_input" in sent:
        return Call("gemini", event, sent["tool_name"], sent["tool_input"], sent)
    if event in SHELL and isinstance(sent.get("command"), str):
        return Call("cursor", event, "shell", {"command": sent["command"]}, sent)
    if event in CURSOR and "tool_input" in sent:
        return Call("cursor", event, str(sent.get("tool_name") or "mcp"), parse_input(sent["tool_input"]), sent)
    if event is None and isinstance(sent.get("toolName"), str) and "toolArgs" in sent:
        over = "postToolUse" if "toolResult" in sent else "postToolUseFailure" if "error" in sent else "preToolUse"
        return Call("copilot", over, sent["toolName"], parse_input(sent["toolArgs"]), sent)
    raise Blocked("the input has an unknown format")


def parse_input(given: Json) -> Json:
    """Return an input that some assistants send as a text of JSON."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return {"text": given}


def answer(call: Call, goes_on: bool, reason: str) -> None:
    """Print the answer in the assistant's own form."""
    word = "allow" if goes_on else "deny"
    if call.form in ("claude", "codex"):
        if goes_on and call.form == "codex":
            return  # it knows only denials; silence goes on
        said = {"hookEventName": "PreToolUse", "permissionDecision": word, "permissionDecisionReason": reason}
        print(json.dumps({"hookSpecificOutput": said}))
    elif call.form == "gemini":
        print(json.dumps({"decision": word, "reason": reason}))
    elif call.form == "cursor":
        print(json.dumps({"permission": word, "user_message": reason, "agent_message": reason}))
    else:
        print(json.dumps({"permissionDecision": word, "permissionDecisionReason": reason}))


# The local table


def find_config() -> Path:
    return Path(os.environ.get("AGENT_HOOK_CONFIG") or "~/.config/gadget/hook.json").expanduser()


def load_config() -> Config:
    """Return the configuration, once it is known to be whole and closed to others."""
    path = find_config()
    try:
        status = path.stat()
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Blocked(f"{path} cannot be read: {error}") from None
    closed_to = 0o037 if status.st_uid == 0 else 0o077  # the assistant's group may read what only root can change
    if os.name == "posix" and stat.S_IMODE(status.st_mode) & closed_to:
        raise Blocked(f"{path} holds a key and can be read by others: chmod 640 if root owns it, else chmod 600")
    if not isinstance(config, dict):
        raise Blocked(f"{path} must be a JSON object")
    config["url"] = os.environ.get("AGENT_HOOK_URL") or config.get("url")
    config["key"] = os.environ.get("AGENT_HOOK_KEY") or config.get("key")
    check_config(config, path)
    return Config(config)


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
        raise Blocked(f"{path}: timeout_s must be a number above {MARGIN_S:g}, at most {LONGEST_TIMEOUT_S:g}")
    rules = config.get("rules", [])
    if not isinstance(rules, list):
        raise Blocked(f"{path}: rules must be a list")
    for rule in rules:
        if not isinstance(rule, dict) or rule.get("do") not in VERDICTS or set(rule) - {"tool", "input", "do", "level"}:
            raise Blocked(f"{path}: a rule has only tool, input, level and do; `do` must be ask, allow or deny")
        if problem := find_bad_expression(rule):
            raise Blocked(f"{path}: {problem}")


def find_bad_expression(rule: dict[str, Json]) -> str:
    try:
        for name in ("tool", "input"):
            re.compile(rule.get(name, ""))
    except (re.error, TypeError, OverflowError, RecursionError) as error:
        return f"a rule has an invalid regular expression: {error}"
    return ""


def find_rule(config: Config, call: Call) -> dict[str, Json]:
    """Return the first rule that matches the call; the default if none does."""
    for rule in config.get("rules", []):
        names_tool = "tool" not in rule or re.fullmatch(rule["tool"], call.tool)
        if names_tool and ("input" not in rule or matches_input(rule, call.given)):
            return dict(rule)
    return {"do": config.get("default", "ask")}


def matches_input(rule: dict[str, Json], given: dict[str, Json]) -> bool:
    """Return True if one text of the input matches, or to allow the call, every one: the assistant writes them all."""
    matches = [bool(re.fullmatch(rule["input"], text)) for text in texts_of(given)]
    if rule["do"] != "allow":
        return any(matches)
    if isinstance(given.get("command"), str):
        acting = {name: value for name, value in given.items() if name != "description"}
        matches = [bool(re.fullmatch(rule["input"], text)) for text in texts_of(acting)]
    return bool(matches) and all(matches)


def texts_of(given: Json) -> Iterator[str]:
    if isinstance(given, str):
        yield given
    for child in given.values() if isinstance(given, dict) else given if isinstance(given, list) else ():
        yield from texts_of(child)


# Gadget


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would take the key elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


def send(config: Config, method: str, path: str, body: Json = None, wait_s: float = 10.0) -> dict[str, Json]:
    """Send one request and return the answer's object."""
    request = urllib.request.Request(config["url"].rstrip("/") + path, method=method)
    request.add_header("Authorization", "Bearer " + config["key"])
    data = None
    if body is not None:
        data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.build_opener(NoRedirects).open(request, data, timeout=wait_s) as response:
            found = json.loads(response.read(LARGEST_ANSWER))
    except urllib.error.HTTPError as error:
        raise Refused(error.code, read_detail(error)) from None
    except (OSError, ValueError) as error:
        raise Blocked(f"Gadget cannot be reached: {error}") from None
    if not isinstance(found, dict):
        raise Blocked("Gadget's answer has an unknown format")
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
    """Compare the answer with the call: it must be about exactly these params."""
    text = json.dumps(call.params, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    if (found.get("action"), found.get("params_digest")) != (call.action, digest):
        raise Blocked("Gadget's answer is about a different call")
    if not re.fullmatch(r"\d{1,18}", str(found.get("id"))):
        raise Blocked("Gadget's answer has an unknown format")
    return found


def wait_for_decision(config: Config, call: Call, found: dict[str, Json], until: float) -> dict[str, Json]:
    """Poll until somebody has decided, or the time is over."""
    while found.get("status") == "waiting" and (left := until - time.monotonic()) > 1:
        wait_s = min(25.0, left)
        path = f"/api/asks/{found['id']}?wait_s={wait_s:.1f}"
        found = check_ask(call, send(config, "GET", path, wait_s=wait_s + SHORTEST_MARGIN_S))
        if found.get("status") == "waiting":
            time.sleep(0.5)  # where too many wait, Gadget answers at once
    return found


def decide(config: Config, call: Call) -> tuple[bool | None, str]:
    """Return whether the call goes on, and why; None if nobody has to be asked."""
    until = time.monotonic() + float(config.get("timeout_s", 60)) - MARGIN_S
    rule = find_rule(config, call)
    if rule["do"] == "allow":
        return None, ""
    if rule["do"] == "deny":
        return False, "Your team's rules for this assistant forbid it. Do not try again."
    found = wait_for_decision(config, call, ask(config, call, rule.get("level", "destructive")), until)
    if found.get("status") == "approved":
        redeem(config, call, found)
        return True, f"Approved by {found.get('decided_by')} in Gadget."
    return False, explain(found)


def redeem(config: Config, call: Call, found: dict[str, Json]) -> None:
    """Redeem the receipt; only one call can."""
    done = check_ask(call, send(config, "POST", f"/api/asks/{found['id']}/redeem", {"receipt": found["receipt"]}))
    if done.get("status") != "redeemed":
        raise Blocked("Gadget did not accept the receipt")


def explain(found: dict[str, Json]) -> str:
    """Say why the call does not go on now."""
    status, where, who = found.get("status"), found.get("url"), found.get("decided_by")
    return {
        "waiting": f"Nobody has decided yet (ask {found['id']}, {where}). Try exactly the same call again later.",
        "denied": f"{who} denied this in Gadget: {found.get('reason') or 'no reason given'}",
        "redeemed": f"This call was let through before, and its outcome is not known yet ({where}). Tell a person.",
        "unknown": f"This call was let through before, and nobody knows its outcome ({where}). Tell a person.",
    }.get(str(status), f"Gadget did not approve this: {status} ({where}).")


def report(config: Config, call: Call) -> None:
    """Tell Gadget that a call that was let through has ended; only one that was asked about needs it."""
    if find_rule(config, call)["do"] != "ask":
        return
    found = send(config, "GET", f"/api/asks?limit=1&effect_key={urllib.parse.quote(call.effect_key)}").get("items", [])
    if found and found[0].get("status") == "redeemed":
        body = {"outcome": "failed" if call.has_failed else "succeeded", "summary": "Reported by the assistant."}
        send(config, "POST", f"/api/asks/{found[0]['id']}/outcome", body)


# Commands


def hold() -> int:
    """Answer one call; block if anything is wrong, and in time whatever a server does."""
    try:
        limit_time(find_end_s())
        call = read_call(sys.stdin.buffer.read(LARGEST_INPUT).decode("utf-8"))
        config = load_config()
        if call.is_over:
            report(config, call)
            os._exit(0)
        goes_on, reason = decide(config, call)
        if goes_on is not None:
            answer(call, goes_on, reason)
        sys.stdout.flush()
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - whatever fails here, the call must not run
        block(str(error) if isinstance(error, Blocked) else f"{type(error).__name__}: {error}")
    return BLOCKED


def find_end_s() -> float:
    """Return the seconds after which the hook blocks, before the assistant's timeout."""
    try:
        return float(load_config().get("timeout_s", 60)) - SHORTEST_MARGIN_S
    except Blocked:
        return SHORTEST_MARGIN_S


def limit_time(end_s: float) -> None:
    """Block after so many seconds: by a thread while the network hangs, by a signal while an expression does."""
    late = "Gadget did not answer in time"
    thread = threading.Timer(end_s, block, [late])
    thread.daemon = True
    thread.start()
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: block("the hook was stopped by a signal"))
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
    """Those of the problems that are files or variables which the assistant can change."""

    def judge(self, is_good: bool, good: str, bad: str) -> None:
        """Say what was found, in the words for this case."""
        print(f"ok       {good}" if is_good else f"PROBLEM  {bad}")
        self.problems += not is_good

    def fail(self, text: str) -> None:
        self.judge(is_good=False, good="", bad=text)


def check(assistant: str, settings: str | None = None, *, waits: bool) -> int:
    """Check everything that calls need to be held; return the number of problems."""
    findings = Findings()
    try:
        config = load_config()
        check_rules(config, findings)
        started, used = check_settings(assistant, settings, config, findings)
        check_started(config, started, findings)
        check_owners([*started, find_config(), *used], findings)
        check_way(config, findings, waits=waits)
    except Blocked as blocked:
        findings.fail(str(blocked))
    if findings.problems > findings.changeable:
        print(f"The check found {findings.problems} problem(s).")
    elif findings.changeable:
        what = "file(s) or variable(s) that it depends on"
        advice = "To enforce it, keep them where only root can change them, and set no variable."
        print(f"The hook is only cooperative: this user can change {findings.changeable} {what}. {advice}")
    else:
        print("The check found no problem: this user cannot change the hook, its configuration or the settings.")
    return findings.problems


def check_rules(config: Config, findings: Findings) -> None:
    """Check that a call which no rule names is held or denied."""
    wide = any(rule["do"] == "allow" and not set(rule) & {"tool", "input"} for rule in config.get("rules", []))
    findings.judge(
        config.get("default", "ask") != "allow" and not wide,
        "calls that no rule names are not allowed",
        "the configuration allows every call that no rule names",
    )


def check_settings(
    assistant: str, settings: str | None, config: Config, findings: Findings
) -> tuple[list[Path], list[Path]]:
    """Check the entries of the assistant's settings; return the files that they start, and the settings themselves."""
    paths = [Path(settings)] if settings else [Path(each).expanduser() for each in SETTINGS[assistant]]
    entries = [(path, entry) for path in paths for entry in list_hooks(path)]
    events = {event for group in HOLDING[assistant] for event in group}
    before = [(path, entry) for path, entry in entries if entry[0] in events]
    missing = min((sorted(set(group) - {entry[0] for _, entry in before}) for group in HOLDING[assistant]), key=len)
    findings.judge(
        not missing,
        f"the hook is installed in {before[0][0] if before else ''}",
        f"no hook for {' and '.join(missing)} in {', '.join(map(str, paths))}",
    )
    for path in filter(switches_hooks_off, paths):
        findings.fail(f"{path} switches all hooks off")
    for _, (event, matcher, timeout_s, _) in before:
        found_s = (
            DEFAULT_TIMEOUTS_S[assistant] if timeout_s is None else timeout_s / (1_000 if assistant == "gemini" else 1)
        )
        own_s = float(config.get("timeout_s", 60))
        margin = found_s - (own_s - SHORTEST_MARGIN_S)
        findings.judge(
            found_s >= own_s,
            f"{event}: the assistant waits {found_s:g} s, {margin:g} s longer than the hook",
            f"{event}: the assistant waits only {found_s:g} s, less than timeout_s ({own_s:g} s)",
        )
        findings.judge(
            matcher in (None, "", "*", ".*"),
            f"{event}: the matcher covers every tool",
            f"{event}: the matcher {matcher!r} does not cover every tool",
        )
    named = list(dict.fromkeys(Path(file).expanduser().absolute() for _, (_, _, _, file) in before if file))
    used = list(dict.fromkeys(path.absolute() for path, _ in before))
    return named or [Path(__file__).resolve()], used


def switches_hooks_off(path: Path) -> bool:
    return bool(read_settings(path).get("disableAllHooks"))


def read_settings(path: Path) -> dict[str, Json]:
    """Return the settings of the file; none if there is no such file, or it cannot be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def list_hooks(path: Path) -> list[tuple[str, Json, float | None, str]]:
    """List event, matcher, timeout and file of each entry of a settings file that starts this hook."""
    events = read_settings(path).get("hooks", {})
    found = []
    for event, groups in events.items() if isinstance(events, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            for entry in group.get("hooks", [group]) if isinstance(group, dict) else ():
                command = (
                    " ".join(str(entry.get(name, "")) for name in ("command", "bash"))
                    if isinstance(entry, dict)
                    else ""
                )
                if "gadget_hook" in command:
                    timeout = entry.get("timeout", entry.get("timeoutSec"))
                    is_number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
                    file = next((word for word in split_command(command) if "gadget_hook" in word), "")
                    found.append((event, group.get("matcher"), timeout if is_number else None, file))
    return found


def split_command(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def check_started(config: Config, files: list[Path], findings: Findings) -> None:
    """Compare the files that the assistant starts with the one that the installation serves."""
    request = urllib.request.Request(config["url"].rstrip("/") + SERVED)
    try:
        with urllib.request.build_opener(NoRedirects).open(request, timeout=10) as response:
            served = response.read(LARGEST_ANSWER)
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
    """Name the files that this user, who also runs the assistant, can change, and variables that replace settings."""
    for path in files:
        changeable = can_change(path)
        findings.changeable += changeable
        user = "this user, who also runs the assistant,"
        findings.judge(not changeable, f"{user} cannot change {path}", f"{user} can change {path}")
    for name in ("AGENT_HOOK_CONFIG", "AGENT_HOOK_URL", "AGENT_HOOK_KEY"):
        if os.environ.get(name):
            findings.changeable += 1
            findings.fail(f"{name} comes from the environment, which this user can change")


def can_change(path: Path) -> bool:
    """Return True if this user can write the file, or replace it, a folder above it or a link on the way to it."""
    stops = list(follow_links(path.absolute()))
    return len(stops) > MOST_LINKS or any(can_replace(each) for each in stops)


def follow_links(path: Path) -> Iterator[Path]:
    """Yield the path, and each one that its links lead to, one link at a time; a loop of links ends after many."""
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
    """Return True if this user can write what is here, or put something else here or in the place of a folder above."""
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
    """Return True if the folder, such as /tmp, keeps this user from replacing the entry, because neither is theirs."""
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
    """Ask about a harmless action; cancel the ask, or wait for a person and let it through once."""
    given = {"description": "A test of the hook; nothing runs.", "time": time.time()}
    call = Call("claude", "PreToolUse", "hook_check", given, {})
    found = ask(config, call, "read")
    is_held = found.get("status") == "waiting"
    address = f"ask {found.get('id')}, {found.get('url')}"
    findings.judge(is_held, f"a call is held: {address}", f"a call was not held, but {found.get('status')}: {address}")
    if waits:
        print(f"         Approve it there within {LONGEST_CHECK_S:g} seconds.", flush=True)
        found = wait_for_decision(config, call, found, time.monotonic() + LONGEST_CHECK_S)
        is_approved = found.get("status") == "approved"
        findings.judge(is_approved, "a person approved the ask", describe_no_approval(found.get("status")))
    if found.get("status") == "approved":
        check_redemption(config, call, found, findings)
    elif found.get("status") == "waiting":
        done = send(config, "POST", f"/api/asks/{found['id']}/cancel")
        was_cancelled = done.get("status") == "cancelled"
        what = "the ask of this check was"
        findings.judge(was_cancelled, f"{what} cancelled", f"{what} not cancelled: it is {done.get('status')}")


def describe_no_approval(status: Json) -> str:
    if status == "waiting":
        return f"nobody decided within {LONGEST_CHECK_S:g} seconds"
    return "a person denied the ask" if status == "denied" else f"the ask was not approved: it is {status}"


def check_redemption(config: Config, call: Call, found: dict[str, Json], findings: Findings) -> None:
    redeem(config, call, found)
    print("ok       the approval lets one call through")
    try:
        redeem(config, call, found)
        findings.fail("the approval lets a second call through")
    except Refused as refused:
        findings.judge(refused.status == CONFLICT, "a second call is refused", str(refused))
    send(config, "POST", f"/api/asks/{found['id']}/outcome", {"outcome": "succeeded", "summary": "A check."})


def main(arguments: list[str]) -> int:
    if not arguments:
        return hold()
    named = [each for each in arguments if each != "--wait"]
    if named[:1] == ["check"] and len(named) in (2, 3) and named[1] in SETTINGS:
        return 1 if check(*named[1:], waits="--wait" in arguments) else 0
    print(__doc__, file=sys.stderr)
    return BLOCKED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
