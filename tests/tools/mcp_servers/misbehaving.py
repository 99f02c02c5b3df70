"""An MCP server with an older revision of the protocol that misbehaves on demand: `python
misbehaving.py [OPTION=VALUE…]`.

Options: `definitions=FILE` (the tools as a JSON list, which is read at each listing),
`start=slow|dies|hangs|stays|obeys` (servers with `stays` or `obeys` keep running when their input
ends; only `obeys` ends on SIGTERM), `calls=FILE` (gets a line for each call and for SIGTERM),
`pages=N` (the number of tools on a page), `listing=FILE` and `greeting=LINE` (the raw responses to
`tools/list` and `initialize`, with MY_ID in place of the request's id). The tool `verbatim`
responds with the line that it is given.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

OPTIONS = dict(argument.split("=", 1) for argument in sys.argv[1:])
ANYTHING = {"type": "object", "properties": {"text": {"type": "string"}}}
NAMES = (
    *(
        "echo",
        "pid",
        "crash",
        "hang",
        "huge",
        "nonsense",
        "broken",
        "environment",
        "progress",
        "fail",
        "refuse",
    ),
    *("fail_inside", "locked", "kill", "close", "verbatim"),
    *(
        "parts",
        "structured",
        "both",
        "wrong_structure",
        "change",
        "samples",
        "logs",
        "cancelled",
        "slow_response",
        "talk",
        "talk_on",
    ),
)
STRUCTURE = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
cancelled: list[Any] = []


def definitions() -> list[dict[str, Any]]:
    if "definitions" in OPTIONS:
        found: list[dict[str, Any]] = json.loads(Path(OPTIONS["definitions"]).read_text())
        return found
    tools: list[dict[str, Any]] = [
        {"name": name, "description": name, "inputSchema": ANYTHING} for name in NAMES
    ]
    for tool in tools:
        if tool["name"] in ("structured", "wrong_structure"):
            tool["outputSchema"] = STRUCTURE
        if tool["name"] == "environment":
            tool["annotations"] = {"readOnlyHint": True, "title": "Harmless"}
    return tools


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def texts(*said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text} for text in said]}


def parts() -> dict[str, Any]:
    text = f"Sold\nto {os.environ.get('TOKEN', 'nobody')}"
    resource = {"uri": "file:///notes", "mimeType": "text/plain", "text": text}
    sound = {"uri": "file:///sound", "mimeType": "audio/wav", "blob": "AAAA"}
    return {
        "content": [
            {"type": "text", "text": "Three things"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource_link", "uri": "http://127.0.0.1:1/x", "name": "x"},
            {"type": "resource", "resource": resource},
            {"type": "resource", "resource": sound},
        ]
    }


def talk_on() -> dict[str, Any]:
    def talk() -> None:
        while True:
            sys.stderr.write("And another thing.\n" * 1_000)

    threading.Thread(target=talk, daemon=True).start()
    return texts("listen")


ANSWERS: dict[str, Any] = {
    "talk_on": lambda _: talk_on(),
    "pid": lambda _: texts(str(os.getpid())),
    "environment": lambda _: texts(json.dumps(dict(os.environ))),
    "fail": lambda _: {**texts("no\x1b[31m such\x00 thing " + "x" * 5_000), "isError": True},
    "parts": lambda _: parts(),
    "structured": lambda _: {**texts('{"n": 1}'), "structuredContent": {"n": 1}},
    "both": lambda _: {**texts("It is one."), "structuredContent": {"n": 1}},
    "wrong_structure": lambda _: {**texts("x"), "structuredContent": {"n": "one"}},
    "fetch": lambda given: texts(urlopen(given["url"], timeout=5).read().decode()),
    "cancelled": lambda _: texts(json.dumps(cancelled)),
}


def end(name: str) -> None:
    """Exit, hang or close the output, as the tool's name says, without a response."""
    if name == "crash":
        os._exit(3)
    elif name == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif name == "close":
        os.close(1)
    if name in ("close", "hang"):
        time.sleep(3600)


def misbehave(name: str, message: dict[str, Any]) -> None:
    """Delay the response to a call or send something else before it, as the tool's name says."""
    if name == "slow_response":
        threading.Timer(1.5, say, [{"id": message["id"], "result": texts("late")}]).start()
    elif name == "huge":
        sys.stdout.write("x" * 50_000_000)
        sys.stdout.flush()
    elif name == "nonsense":
        sys.stdout.write("this is no message\n" * 200)
        sys.stdout.flush()
    elif name == "progress":
        token = message["params"]["_meta"]["progressToken"]
        for step in (1, 2, 3):
            told = {"progressToken": token, "progress": step, "total": 4, "message": f"step {step}"}
            say({"method": "notifications/progress", "params": told})
    elif name == "change":
        say({"method": "notifications/tools/list_changed"})
    elif name == "samples":
        say(
            {
                "id": "s1",
                "method": "sampling/createMessage",
                "params": {"messages": [], "maxTokens": 1},
            }
        )
    elif name == "logs":
        for number in range(500):
            say(
                {
                    "method": "notifications/message",
                    "params": {"level": "info", "data": f"log {number}"},
                }
            )
    elif name == "talk":
        sys.stderr.write(f"{os.environ.get('TOKEN', '')}\n" * 5_000)
        sys.stderr.flush()


def call(message: dict[str, Any]) -> None:
    name, given = message["params"]["name"], message["params"].get("arguments") or {}
    note(name)
    if name == "verbatim":
        sys.stdout.write(given["line"].replace("MY_ID", json.dumps(message["id"])) + "\n")
        sys.stdout.flush()
        return
    if name == "refuse":
        say({"id": message["id"], "error": {"code": -32602, "message": "Unknown tool"}})
        return
    if name == "locked":
        say(
            {
                "id": message["id"],
                "error": {"code": -32000, "message": given.get("text", "Connection closed")},
            }
        )
        return
    if name == "fail_inside":
        say({"id": message["id"], "error": {"code": -32603, "message": "Internal error"}})
        return
    end(name)
    misbehave(name, message)
    if name == "slow_response":
        return
    if name == "broken":
        say({"id": message["id"], "result": {"content": "no list"}})
        return
    response = ANSWERS.get(name, lambda params: texts(json.dumps(params)))
    say({"id": message["id"], "result": response(given)})


def listed(message: dict[str, Any]) -> dict[str, Any]:
    tools, size = definitions(), int(OPTIONS.get("pages", "1000"))
    start = int((message.get("params") or {}).get("cursor") or 0)
    page: dict[str, Any] = {"tools": tools[start : start + size]}
    return {**page, "nextCursor": str(start + size)} if start + size < len(tools) else page


def answer_to(message: dict[str, Any]) -> None:
    method = message.get("method")
    if method == "initialize" and "greeting" in OPTIONS:
        sys.stdout.write(OPTIONS["greeting"].replace("MY_ID", json.dumps(message["id"])) + "\n")
        sys.stdout.flush()
    elif method == "initialize":
        known = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {"listChanged": True}}}
        info = {"serverInfo": {"name": "misbehaving", "version": "1"}}
        say({"id": message["id"], "result": {**known, **info}})
    elif method == "tools/list" and "listing" in OPTIONS:
        line = Path(OPTIONS["listing"]).read_text()
        sys.stdout.write(line.replace("MY_ID", json.dumps(message["id"])) + "\n")
        sys.stdout.flush()
    elif method == "tools/list":
        say({"id": message["id"], "result": listed(message)})
    elif method == "tools/call":
        call(message)
    elif method == "notifications/cancelled":
        cancelled.append(message["params"]["requestId"])
    elif method is None:
        cancelled.append(message)
    elif "id" in message:
        say({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})


def note(text: str) -> None:
    if "calls" in OPTIONS:
        with Path(OPTIONS["calls"]).open("a") as kept:
            kept.write(f"{text}\n")


def obey(*_: object) -> None:
    time.sleep(0.2)  # time for it to exit, and for a wrong second signal to arrive
    note("SIGTERM")
    sys.exit(0)


def main() -> None:
    start = OPTIONS.get("start")
    if start == "dies":
        sys.exit("No key was given.")
    if start in ("slow", "hangs"):
        time.sleep(1.0 if start == "slow" else 3600)
    if start == "stays":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if start == "obeys":
        signal.signal(signal.SIGTERM, obey)
    print("Welcome!", flush=True)
    for line in sys.stdin:
        answer_to(json.loads(line))
    while start in ("stays", "obeys"):
        time.sleep(1)


if __name__ == "__main__":
    main()
