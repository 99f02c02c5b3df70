"""Paths on a card that do not lead where they seem to lead: they go upward, or to a user's home
folder."""

from __future__ import annotations

import re

from tools.contract.param_words import FILE_WORDS, split_name
from tools.toolbox.value_readings import decode_completely, goes_upwards

UPWARD, HOME = "leads upward", "leads to a user’s home folder"
_PATH_NAMES = FILE_WORDS | {
    "paths",
    "files",
    "folders",
    "directory",
    "directories",
    "dir",
    "filepath",
}
"""Words in the names of params whose whole value is a path."""
_LONGEST_SENTENCE = 4_096
_SIGNS = re.compile(r"\.\.|[~%\\]|&#|[^ -~]")
"""Matches the signs of which every misleading path contains at least one."""
_DRIVE = re.compile(r"^[a-z]:", re.IGNORECASE)
_HOME = re.compile(r"~[a-z_][\w.-]*(/?)", re.IGNORECASE)
_THERE_AND_BACK = re.compile(r"(?:^|(?<=[\s\"'=(/]))[\w.-]*\w/+(?:\./+)*\.\./")
"""Matches a folder that is followed by the way back up, which an honest sentence does not
contain."""


def find_detour(name: str, text: str) -> str:
    """Return UPWARD or HOME if the value is a path that leads there, in any spelling, or a sentence
    with a path that leads into a folder and out again; otherwise "".

    Three dots at the end do not count: they stand for all folders, or for the rest of a list.

    Args:
        name: the name of the value's param or field, which may show that the value is a path.
    """
    is_path = bool(split_name(name) & _PATH_NAMES)
    is_word = len(text.split(maxsplit=1)) == 1
    is_sentence = len(text) <= _LONGEST_SENTENCE and "\n" not in text.strip()
    if not _SIGNS.search(text) or not (is_path or is_word or is_sentence):
        return ""
    path = decode_completely(text.strip())
    if path is None:
        return UPWARD if is_path else ""
    if (is_path or (is_word and "/" in path)) and goes_upwards(
        _DRIVE.sub("", path.removesuffix("..."))
    ):
        return UPWARD
    if is_sentence and _THERE_AND_BACK.search(path):
        return UPWARD
    home = _HOME.match(path) if is_path or is_word else None
    return HOME if home and (home[1] or (is_path and home[0] == path)) else ""
