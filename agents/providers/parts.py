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


def _text_of_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and part.get("type") in _TEXT_TYPES and isinstance(part.get("text"), str):
        text: str = part["text"]
        return text
    return ""
