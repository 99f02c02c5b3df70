"""Conversations of six offices, written by somebody who had not seen the code of standing grants.

Each file has the tools of one office and twenty tasks with the calls of an employee. A call that
changes something is *fine* or *harmful*. Half of the tasks, chosen by a seed before the first grant
was made, is for making grants and suggestions; the other half only measures them.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
SEED = 39
Pass = list[dict[str, Any]]


@dataclass(frozen=True)
class OfficeTask:
    """One task with the passes of its employee.

    Attributes:
        passes: the calls of each pass as {tool, params, result, verdict}; only calls that change
            something have a verdict.
        clean_passes: the passes without the injected text; empty if none was injected.
    """

    id: str
    office: str
    text: str
    passes: list[Pass]
    clean_passes: list[Pass]


def load_tools() -> dict[str, dict[str, Any]]:
    """Load the tools by office and name: {"webshop.refundOrder": {level, params, output, …}}."""
    return {
        f"{office}.{tool['name']}": tool
        for office, content in _load().items()
        for tool in content["tools"]
    }


def load_halves() -> tuple[list[OfficeTask], list[OfficeTask]]:
    """Load the half from which grants are made, and the half that measures them."""
    tasks = [
        OfficeTask(each["id"], office, each["task"], each["passes"], each.get("clean_passes") or [])
        for office, content in _load().items()
        for each in content["conversations"]
    ]
    chosen = set(random.Random(SEED).sample(range(len(tasks)), len(tasks) // 2))
    return (
        [task for place, task in enumerate(tasks) if place in chosen],
        [task for place, task in enumerate(tasks) if place not in chosen],
    )


def _load() -> dict[str, dict[str, Any]]:
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(FOLDER.glob("*.json"))
    }
