"""Read deploy/Dockerfile: its instructions, and the environment that the image gives its
containers."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from tests.deployment.package import ROOT

FILE = ROOT / "deploy" / "Dockerfile"


@dataclass(frozen=True)
class Instruction:
    """One instruction with its arguments; lines that end with a backslash are joined with the
    next."""

    name: str
    arguments: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.arguments)


def stages() -> list[list[Instruction]]:
    """List the instructions of each stage, FROM first."""
    lines = [
        line for line in FILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")
    ]
    whole = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    found: list[list[Instruction]] = []
    for line in filter(str.strip, whole.splitlines()):
        name, _, arguments = line.partition(" ")
        if name == "FROM":
            found.append([])
        if found:
            found[-1].append(Instruction(name, arguments.strip()))
    return found


def environment() -> dict[str, str]:
    """Return the variables of the last stage, as written in the file."""
    words = [word for each in stages()[-1] if each.name == "ENV" for word in each.words]
    return {name: value for name, _, value in (word.partition("=") for word in words)}
