"""Files with the scripts of scripted employees, in a folder that a test shares with the processes
that it starts."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from django.conf import settings


def write_script(text: str, name: str = "") -> str:
    """Write a script file and return its name; unless a name is given, it is derived
    from the text."""
    name = name or hashlib.sha256(text.encode()).hexdigest()[:20]
    path = settings.GADGET_SCRIPTS_DIR / f"{name}.yaml"
    if path.exists() and path.read_text("utf-8") == text:
        return name
    path.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        file.write(text)
    Path(file.name).replace(path)  # a worker may be reading it
    return name
