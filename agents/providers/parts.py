"""The text of an assistant's content, which may be a string, a list of parts, or missing."""

from typing import Any

_TEXT_TYPES = frozenset({"text", "output_text", "", None})


def text_of(content: Any) -> str:
    """What a person may read; reasoning and other parts are left out."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_text_of_part(part) for part in content)
    return ""


def is_text_part(part: Any) -> bool:
    """Return True for a content part that a person may read."""
    return isinstance(part, str) or (
        isinstance(part, dict) and part.get("type") in _TEXT_TYPES and isinstance(part.get("text"), str)
    )


def _text_of_part(part: Any) -> str:
    if not is_text_part(part):
        return ""
    text: str = part if isinstance(part, str) else part["text"]
    return text
