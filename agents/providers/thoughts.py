"""Separates a model's thoughts, `<think>…</think>`, from its answer, in a text that may come in pieces.

A tag counts where no quote or backtick stands before it, and not inside a fenced block of code: an answer may write
about such tags. An unclosed block is a thought if it began a line; otherwise the tag was only mentioned.
"""

import re
from dataclasses import dataclass
from typing import Any

from agents.providers.parts import is_text_part, text_of

_TAG = re.compile(r"</?think>", re.IGNORECASE)
_LONGEST_TAG = len("</think>")
_MENTIONED_AFTER = frozenset("`\"'\u201c\u2018\\")
_FENCE = "```"


class ThoughtSplitter:
    """Takes a text piece by piece; each character is looked at once."""

    def __init__(self) -> None:
        self.thoughts: list[str] = []
        self.answer_begins = 0
        """Visible text before this place was thought: a closing tag without an opening one followed."""
        self._pending = ""
        self._thinking: list[str] | None = None
        self._opened_line = False
        self._opening_tag = ""
        self._unnoted: list[str] = []
        self._length = 0
        self._last = ""
        self._line_is_blank = True
        self._backticks = 0
        self._in_fence = False

    def add(self, text: str) -> str:
        """Return the part of the text, including text held back before, that belongs to the answer."""
        if "<" not in text and not self._pending and self._thinking is None:
            self._unnoted.append(text)
            return text
        text = self._pending + text
        visible: list[str] = []
        position = 0
        for tag in _TAG.finditer(text):
            self._take(text[position : tag.start()], visible)
            self._take_tag(tag[0], visible)
            position = tag.end()
        kept = _beginning_of_tag(text, position)
        self._pending = text[kept:]
        self._take(text[position:kept], visible)
        return "".join(visible)

    def finish(self) -> str:
        """Return held-back text that turned out to be part of the answer."""
        visible: list[str] = []
        self._take(self._pending, visible)
        self._pending = ""
        unclosed, self._thinking = self._thinking, None
        if unclosed is not None and self._opened_line:
            self.thoughts.append("".join(unclosed))
        elif unclosed is not None:
            visible += [self._opening_tag, *unclosed]
        return "".join(visible)

    def _take(self, text: str, visible: list[str]) -> None:
        if self._thinking is not None:
            self._thinking.append(text)
        elif text:
            visible.append(text)
            self._unnoted.append(text)

    def _take_tag(self, tag: str, visible: list[str]) -> None:
        self._note("".join(self._unnoted))
        is_closing = tag[1] == "/"
        if self._thinking is not None and is_closing:
            self.thoughts.append("".join(self._thinking))
            self._thinking = None
            self._line_is_blank = True
        elif self._thinking is not None or self._in_fence or self._last in _MENTIONED_AFTER:
            self._take(tag, visible)
        elif is_closing:
            self._close_unopened()
        else:
            self._thinking, self._opening_tag, self._opened_line = [], tag, self._line_is_blank

    def _close_unopened(self) -> None:
        """Some servers put the opening tag into the prompt, so that only the closing one is written."""
        if not self.thoughts and not self.answer_begins:
            self.answer_begins = self._length
        self._line_is_blank = True

    def _note(self, text: str) -> None:
        """Track the answer's place in its line and its code blocks; done only where a tag comes."""
        self._unnoted.clear()
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
class Split:
    """A whole text, split into answer and thought."""

    answer: str
    thought: str


def split_text(text: str) -> Split:
    """Separate the thoughts of a whole text from its answer."""
    if "think>" not in text.lower():
        return Split(text, "")
    splitter = ThoughtSplitter()
    visible = splitter.add(text) + splitter.finish()
    answer, thoughts = visible, splitter.thoughts
    if splitter.answer_begins and visible[splitter.answer_begins :].strip():
        thoughts = [visible[: splitter.answer_begins], *thoughts]
        answer = visible[splitter.answer_begins :]
    if not thoughts:
        return Split(answer, "")
    return Split(answer.strip(), "\n\n".join(stripped for each in thoughts if (stripped := each.strip())))


def take_thoughts(message: dict[str, Any]) -> str:
    """Take the thoughts out of an assistant's message, in place, and return them."""
    content = message.get("content")
    split = split_text(text_of(content))
    if split.answer == text_of(content):
        return ""
    if isinstance(content, list):
        others = [part for part in content if not is_text_part(part)]
        message["content"] = [*others, {"type": "text", "text": split.answer}]
    else:
        message["content"] = split.answer
    return split.thought


def _beginning_of_tag(text: str, position: int) -> int:
    """Return where an unfinished tag begins at the end of the text, or its length."""
    place = text.rfind("<", max(position, len(text) - _LONGEST_TAG + 1))
    if place >= 0 and any(tag.startswith(text[place:].lower()) for tag in ("<think>", "</think>")):
        return place
    return len(text)
