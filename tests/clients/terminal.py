"""A terminal that plays the person at a program: it reads what the program prints, and presses
keys."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time

CONTROL = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b[()][0-9A-Z]|\x1b[=>78M]"
)
ROWS, COLUMNS = 50, 140
ANSWERS = {
    "\x1b[6n": "\x1b[1;1R",
    "\x1b[c": "\x1b[?1;2c",
    "\x1b]10;?": "\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
    "\x1b]11;?": "\x1b]11;rgb:0000/0000/0000\x1b\\",
}
"""Replies to the queries of a program to its terminal: cursor position, kind of terminal, and
colors."""
QUESTION = re.compile("|".join(map(re.escape, ANSWERS)))


class Terminal:
    """The person's side of a terminal; the program's side is `inner`, a file descriptor."""

    def __init__(self) -> None:
        self._outer, self.inner = os.openpty()
        fcntl.ioctl(self.inner, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._printed = self._asked = ""

    def await_text(self, text: str, seconds: float = 60) -> None:
        """Wait until the program has printed the text after the last pressed keys; ignore color
        codes and other control sequences."""
        latest = time.monotonic() + seconds
        while not self._shows(text):
            assert time.monotonic() < latest, f"no {text!r} in:\n{self._printed!r}"
            self._read()

    def press_until(self, key: str, text: str, seconds: float = 60) -> None:
        """Press a key once a second until the program prints the text: a dialog ignores keys
        pressed just after it opens."""
        latest = time.monotonic() + seconds
        self._printed = ""
        pressed = time.monotonic()
        while not self._shows(text):
            assert time.monotonic() < latest, f"no {text!r} in:\n{self._printed!r}"
            if time.monotonic() > pressed + 1:
                os.write(self._outer, key.encode())
                pressed = time.monotonic()
            self._read()

    def press(self, keys: str) -> None:
        """Type keys; from then on, ignore earlier output."""
        self._printed = ""
        os.write(self._outer, keys.encode())

    def await_end(self, process: subprocess.Popen[str], seconds: float = 60) -> None:
        """Wait until the program has ended; read what it still prints, so that it is
        not blocked."""
        latest = time.monotonic() + seconds
        while process.poll() is None:
            assert time.monotonic() < latest, f"it goes on:\n{self._printed!r}"
            self._read()

    def close(self) -> None:
        os.close(self._outer)
        os.close(self.inner)

    def _shows(self, text: str) -> bool:
        return text in CONTROL.sub("", self._printed)

    def _read(self) -> None:
        if not select.select([self._outer], [], [], 0.1)[0]:
            return
        printed = os.read(self._outer, 65_536).decode(errors="replace")
        self._printed += printed
        self._asked += printed
        for question in QUESTION.findall(self._asked):
            os.write(self._outer, ANSWERS[question].encode())
        self._asked = QUESTION.sub("", self._asked)[-10:]
