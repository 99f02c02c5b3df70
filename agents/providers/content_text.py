"""Extract the text of an assistant message's content, which may be a string, a list of parts, or
missing."""

from typing import Any

_TEXT_TYPES = frozenset({"text", "output_text", "", None})


def extract_text(content: Any) -> str:
    """Return the text that is meant for people, without reasoning and other parts; empty if there
    is none."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_get_part_text(part) for part in content)
    return ""


def is_text_part(part: Any) -> bool:
    """Return True if a part of the content is text that is meant for people."""
    return isinstance(part, str) or (
        isinstance(part, dict)
        and part.get("type") in _TEXT_TYPES
        and isinstance(part.get("text"), str)
    )


def _get_part_text(part: Any) -> str:
    if not is_text_part(part):
        return ""
    text: str = part if isinstance(part, str) else part["text"]
    return text
