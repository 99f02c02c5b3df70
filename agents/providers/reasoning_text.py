"""Separate a model's reasoning, `<think>…</think>`, from the rest of its response, which may arrive
in pieces.

A tag is ignored after a quote or backtick and inside a fenced code block, because the text may only
mention it there. An unclosed block is reasoning if its tag began a line; otherwise the tag was only
mentioned.
"""

import re
from dataclasses import dataclass
from typing import Any

from agents.providers.content_text import extract_text, is_text_part

_TAG = re.compile(r"</?think>", re.IGNORECASE)
_LONGEST_TAG = len("</think>")
_QUOTES = frozenset("`\"'\u201c\u2018\\")
_FENCE = "```"


class ReasoningSplitter:
    """Separates reasoning from a text that arrives in pieces, in time proportional to the text's
    length."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.content_begins = 0
        """The length of the visible text that turned out to be reasoning, because a closing tag
        followed it without an opening tag."""
        self._pending = ""
        self._open_block: list[str] | None = None
        self._opened_line = False
        self._opening_tag = ""
        self._untracked: list[str] = []
        self._length = 0
        self._last = ""
        self._line_is_blank = True
        self._backticks = 0
        self._in_fence = False

    def add(self, text: str) -> str:
        """Add a piece; return the text that is now known not to be reasoning. This text may include
        parts of earlier pieces."""
        if "<" not in text and not self._pending and self._open_block is None:
            self._untracked.append(text)
            return text
        text = self._pending + text
        visible: list[str] = []
        position = 0
        for tag in _TAG.finditer(text):
            self._take(text[position : tag.start()], visible)
            self._take_tag(tag[0], visible)
            position = tag.end()
        held_from = _find_unfinished_tag(text, position)
        self._pending = text[held_from:]
        self._take(text[position:held_from], visible)
        return "".join(visible)

    def finish(self) -> str:
        """End the text; return the text that was held back and turned out not to be reasoning."""
        visible: list[str] = []
        self._take(self._pending, visible)
        self._pending = ""
        unclosed_block, self._open_block = self._open_block, None
        if unclosed_block is not None and self._opened_line:
            self.blocks.append("".join(unclosed_block))
        elif unclosed_block is not None:
            visible += [self._opening_tag, *unclosed_block]
        return "".join(visible)

    def _take(self, text: str, visible: list[str]) -> None:
        if self._open_block is not None:
            self._open_block.append(text)
        elif text:
            visible.append(text)
            self._untracked.append(text)

    def _take_tag(self, tag: str, visible: list[str]) -> None:
        self._track_position("".join(self._untracked))
        is_closing = tag[1] == "/"
        if self._open_block is not None and is_closing:
            self.blocks.append("".join(self._open_block))
            self._open_block = None
            self._line_is_blank = True
        elif self._open_block is not None or self._in_fence or self._last in _QUOTES:
            self._take(tag, visible)
        elif is_closing:
            self._close_unopened()
        else:
            self._open_block, self._opening_tag, self._opened_line = [], tag, self._line_is_blank

    def _close_unopened(self) -> None:
        """Treat the text so far as reasoning, because with some servers, the prompt already
        contains the opening tag."""
        if not self.blocks and not self.content_begins:
            self.content_begins = self._length
        self._line_is_blank = True

    def _track_position(self, text: str) -> None:
        """Track lines and code blocks in the text before a tag."""
        self._untracked.clear()
        if not text:
            return
        self._length += len(text)
        line = text.rpartition("\n")[2]
        self._line_is_blank = not line.strip() and (self._line_is_blank or "\n" in text)
        self._last = text[-1]
        joined = "`" * self._backticks + text
        self._backticks = min(len(joined) - len(joined.rstrip("`")), len(_FENCE))
        fences = joined[: len(joined) - self._backticks].count(_FENCE)
        self._in_fence ^= bool(fences % 2)


@dataclass(frozen=True)
class SplitReasoning:
    """The two parts of a complete text: its content and its reasoning."""

    content: str
    reasoning: str


def split_reasoning(text: str) -> SplitReasoning:
    """Split a complete text into content and reasoning."""
    if "think>" not in text.lower():
        return SplitReasoning(text, "")
    splitter = ReasoningSplitter()
    visible = splitter.add(text) + splitter.finish()
    content, blocks = visible, splitter.blocks
    if splitter.content_begins and visible[splitter.content_begins :].strip():
        blocks = [visible[: splitter.content_begins], *blocks]
        content = visible[splitter.content_begins :]
    if not blocks:
        return SplitReasoning(content, "")
    return SplitReasoning(
        content.strip(), "\n\n".join(stripped for each in blocks if (stripped := each.strip()))
    )


def extract_reasoning(message: dict[str, Any]) -> str:
    """Remove the reasoning from the content of an assistant message, in place, and return it; empty
    if there is none."""
    content = message.get("content")
    split = split_reasoning(extract_text(content))
    if split.content == extract_text(content):
        return ""
    if isinstance(content, list):
        others = [part for part in content if not is_text_part(part)]
        message["content"] = [*others, {"type": "text", "text": split.content}]
    else:
        message["content"] = split.content
    return split.reasoning


def _find_unfinished_tag(text: str, position: int) -> int:
    """Return the position of an unfinished tag at the end of the text; if there is none, return the
    length of the text."""
    start = text.rfind("<", max(position, len(text) - _LONGEST_TAG + 1))
    if start >= 0 and any(tag.startswith(text[start:].lower()) for tag in ("<think>", "</think>")):
        return start
    return len(text)
