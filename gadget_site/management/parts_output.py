"""Write the lines of several processes to one output, each with the name of its part: as a prefix,
or as a field of JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, TextIO

NAME_WIDTH = 8
SUPERVISOR = "up"
"""The name of the part that starts the other parts."""


class PartsOutput:
    """An output of lines, each from one part; in JSON each line is an object with `event` and
    `part`."""

    def __init__(self, output: TextIO, *, as_json: bool = False) -> None:
        self._output = output
        self._as_json = as_json

    def write(self, part: str, line: str) -> None:
        """Write one line, labeled with the name of its part."""
        self._output.write(
            _add_part(part, line) if self._as_json else f"{part:<{NAME_WIDTH}} | {line}\n"
        )
        self._output.flush()

    def write_plain(self, *lines: str) -> None:
        """Write lines of the supervisor itself: without a prefix, or in JSON with its name as the
        part."""
        for line in lines:
            if not self._as_json:
                self._output.write(f"{line}\n")
            elif line.strip("─ "):
                self._output.write(_add_part(SUPERVISOR, line))
        self._output.flush()


def _add_part(part: str, line: str) -> str:
    return json.dumps({**_parse(line), "part": part}, ensure_ascii=False) + "\n"


def _parse(line: str) -> dict[str, Any]:
    """Return the line's fields. A line that is not a JSON object, such as one written by a library,
    becomes the value of `event`."""
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        parsed = None
    return (
        parsed
        if isinstance(parsed, dict)
        else {"event": line, "timestamp": datetime.now(UTC).isoformat()}
    )
