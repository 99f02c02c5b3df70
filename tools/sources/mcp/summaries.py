"""One line for people about a server's response: its first meaningful words, or else a description
of its contents."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tools.sources.mcp.display_text import clean_line, clean_text

MAX_LENGTH = 200
MAX_READ = 20_000
"""The number of characters at the start of a text that are searched for a sentence."""
MAX_LINE = 1_000
"""The number of characters at the start of a line that are read."""
MAX_NAMES = 5
_MAX_VALUE_LENGTH = 60
_EMPTY_WORDS = frozenset(
    {
        *(
            "done",
            "ok",
            "okay",
            "success",
            "successful",
            "successfully",
            "succeeded",
            "completed",
            "complete",
        ),
        *(
            "finished",
            "result",
            "results",
            "output",
            "response",
            "answer",
            "content",
            "text",
            "null",
            "none",
        ),
        *("json", "undefined", "message", "status", "true", "summary", "details"),
    }
)
"""Words that are not meaningful on their own."""
_PLAIN_VALUES = frozenset({"true", "null", "none", "ok", "success"})
_TELLING_KEYS = (
    "message",
    "summary",
    "text",
    "title",
    "name",
    "description",
    "status",
    "result",
    "answer",
    "content",
)
_MARKUP = re.compile(r"(\*\*|__|`+|~~)")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_LABEL = re.compile(r"^((?:[-*+]\s+)?)\[(?:[ xX]|([\w .-]+))\]\s+")
_LEAD = re.compile(r"(?:[-*+•>]\s+|\d{1,3}[.)]\s+|\|\s*)+")
_HEADING = re.compile(r"#{1,6}(?:\s|$)")
_RULE = re.compile(r"[\W_]*")
_TAG = re.compile(r"</?[\w:.-]+(?:\s[^>]*)?/?>")
_FENCE = "```"
_DECODER = json.JSONDecoder()


def summarize(texts: Sequence[str], data: Any, others: Sequence[str]) -> str:
    """Summarize a response on a line of at most 200 characters: a sentence, else data or a heading.

    Args:
        texts: the texts of the response's content.
        data: the response's structured content; None if there is none.
        others: the response's other parts, each described on the first line.
    """
    headings: list[str] = []
    found = next((line for text in texts if (line := _find_sentence(text, headings))), "")
    if not found and data is None:
        values = [value for text in texts if (value := _parse(text)) is not None]
        data = values[0] if len(values) == 1 else values or None
    found = found or _summarize_data(data) or next(iter(headings), "") or _count(others)
    return clean_line(found or _tell_words(texts), MAX_LENGTH)


def _find_sentence(text: str, headings: list[str]) -> str:
    """Return the first meaningful line, or a summary if JSON comes first; collect the headings."""
    plain = clean_text(text, MAX_READ)
    if _parse(plain) is not None:
        return ""
    is_code, lead, code = False, "", ""
    for start, line in _split_lines(plain):
        bare = _clean_markup(line)
        if line.strip().startswith(_FENCE):
            is_code = not is_code
        elif value := _decode_at(plain, start, line):
            return f"{lead} {_summarize_data(value)}".strip()
        elif not _says_something(bare):
            continue
        elif _HEADING.match(line.strip()):
            headings.append(bare)
        elif is_code:
            code = code or bare
        elif bare.endswith(":"):
            lead = lead or bare
        else:
            return f"{lead} {bare}" if lead else bare
    return lead.removesuffix(":") or code


def _split_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its place in the text."""
    start = 0
    for line in text.split("\n"):
        yield start, line
        start += len(line) + 1


def _decode_at(text: str, start: int, line: str) -> Any:
    """Return the object or list that begins with this line as JSON; None if there is none."""
    if not line.lstrip().startswith(("{", "[")):
        return None
    try:
        return _DECODER.raw_decode(text, start + len(line) - len(line.lstrip()))[0]
    except (ValueError, RecursionError):
        return None


def _clean_markup(line: str) -> str:
    bare = _TAG.sub("", _LINK.sub(r"\1", line.strip()[:MAX_LINE]))
    bare = _LABEL.sub(_unwrap_label, _MARKUP.sub("", _HEADING.sub("", bare)))
    return " ".join(_LEAD.sub("", bare, count=1).replace("|", " ").split())


def _unwrap_label(found: re.Match[str]) -> str:
    """Write `[FILE] notes.txt` without brackets, and drop the check box of a task."""
    return f"{found[1]}{found[2]} " if found[2] else found[1]


def _says_something(line: str) -> bool:
    words = re.findall(r"\w+", line.lower())
    return (
        bool(words)
        and not _RULE.fullmatch(line)
        and not all(word in _EMPTY_WORDS for word in words)
    )


def _parse(text: str) -> Any:
    """Parse the text as a JSON object or list, even inside a code fence; None if it is something
    else."""
    plain = text.strip()
    if plain.startswith(_FENCE) and plain.endswith(_FENCE):
        plain = plain.strip("`").partition("\n")[2].strip()
    if not plain.startswith(("{", "[")):
        return None
    try:
        return json.loads(plain)
    except (ValueError, RecursionError):
        return None


def _summarize_data(data: Any) -> str:
    """Summarize JSON: return a text in it that is for people, or else its fields, or the number of
    its entries."""
    inner, name = data, "item"
    while isinstance(inner, Mapping) and len(inner) == 1:
        name, inner = next(iter(inner.items()))
    if isinstance(inner, Mapping):
        return _summarize_object(inner)
    if isinstance(inner, list):
        return _summarize_list(inner, str(name))
    if isinstance(inner, str) and (parsed := _parse(inner)) is not None:
        return _summarize_data(parsed)
    if isinstance(inner, str):
        return _find_sentence(inner, []) or (
            f"{name}: {inner}" if inner.strip() and data is not inner else ""
        )
    return (
        ""
        if inner is None
        else f"{name}: {json.dumps(inner)}"
        if data is not inner
        else json.dumps(inner)
    )


def _summarize_object(data: Mapping[str, Any]) -> str:
    if not data:
        return ""
    for key in _TELLING_KEYS:
        value = data.get(key)
        if isinstance(value, str) and (sentence := _find_sentence(value, [])):
            return sentence
    lists = [(key, value) for key, value in data.items() if isinstance(value, list)]
    scalars = {key: value for key, value in data.items() if not isinstance(value, Mapping | list)}
    if scalars and (any(map(_is_telling, scalars.values())) or not lists):
        told = [
            f"{key}: {_shorten(value)}"
            for key, value in scalars.items()
            if value is not None or not lists
        ]
        return ", ".join(told[:MAX_NAMES]) + (", …" if len(data) > MAX_NAMES else "")
    if len(lists) == 1:
        return _summarize_list(lists[0][1], lists[0][0])
    if lists:
        return ", ".join(
            f"{key}: {_count_noun(len(value), 'item')}" for key, value in lists[:MAX_NAMES]
        )
    return f"{_count_noun(len(data), 'field')}: {_name_some(list(data))}"


def _is_telling(value: Any) -> bool:
    """Return False for values that are not content, such as an empty cursor next to a list."""
    return value is not None and not isinstance(value, bool) and value != ""


def _summarize_list(entries: Sequence[Any], name: str) -> str:
    count = _count_noun(len(entries), "item") if name in ("item", "result", "items", "data") else ""
    head = count or f"{name}: {_count_noun(len(entries), 'item')}"
    if not entries:
        return "No items" if count else f"{name}: no items"
    first = entries[0]
    if isinstance(first, Mapping) and first:
        return f"{head}: {_name_some(list(first))}"
    if isinstance(first, Mapping | list):
        return head
    return f"{head}: {_name_some([_shorten(entry) for entry in entries[: MAX_NAMES + 1]])}"


def _name_some(names: Sequence[Any]) -> str:
    return ", ".join(map(str, names[:MAX_NAMES])) + (", …" if len(names) > MAX_NAMES else "")


def _shorten(value: Any) -> str:
    return clean_line(value if isinstance(value, str) else json.dumps(value), _MAX_VALUE_LENGTH)


def _count(others: Sequence[str]) -> str:
    """Describe the parts that are not text: a single part, or the number of parts and the first
    one."""
    if not others:
        return ""
    first = others[0].partition("\n")[0].strip("[]")
    return first if len(others) == 1 else f"{_count_noun(len(others), 'part')}: {first}, …"


def _tell_words(texts: Sequence[str]) -> str:
    """Describe a response without useful words: quote a plain value, and leave out any other
    text."""
    text = clean_line(" ".join(texts), MAX_LENGTH)
    if text.lower() in _PLAIN_VALUES:
        return f"The server responded: {text}"
    return "The server responded with text" if text else "The server responded without content"


def _count_noun(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
