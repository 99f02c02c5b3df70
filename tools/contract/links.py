"""Links in a text, whose words may differ from their addresses: in HTML, Markdown and similar
formats, and names before email addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.contract.host_endings import ENDINGS
from tools.contract.spelled_addresses import unescape_html
from tools.contract.web_authorities import HOST_PATTERN

_WORDS = r"[^\[\]]{1,400}"
_TARGET = r"[^\s<>\[\]()|\"'`]{1,2000}"
_IN_SIGNS = re.compile(
    rf"\[(?P<a>{_WORDS})\]\(\s{{0,9}}<?(?P<b>[^\s)>]{{1,2000}})"
    rf"|<(?P<d>(?:https?:)?//{_TARGET})\|(?P<c>[^<>|\n]{{1,400}})>"
    rf"|\[(?P<e>[^\[\]|\n]{{1,400}})\|(?P<f>{_TARGET})[\]|]"
    rf"|`(?P<g>[^`<>\n]{{1,400}})<(?P<h>{_TARGET})>`_",
    re.IGNORECASE,
)
"""A link in Markdown, Slack, Jira and reStructuredText: its words and its address."""
_BBCODE = re.compile(
    rf"\[url=[\"']?({_TARGET})[\"']?\]([^\[]{{0,400}}(?:\[/?[a-z]\][^\[]{{0,400}}){{0,4}})\[/url",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"<(/?)a\b((?:[^<>\"']|\"[^\"<]{0,400}\"|'[^'<]{0,400}')*+|[^<>]*)>", re.IGNORECASE
)
_ANY_TAG = re.compile(r"<[^<>]*>|\[/?[a-z]\]", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"([^\s\"'=<>/]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'<>]+)))?", re.IGNORECASE
)
_REFERENCE = re.compile(rf"\[({_WORDS})\](?:\[([^\[\]]{{0,100}})\])?(?![\[(:])")
"""A Markdown link that refers to an address by name: `[words][name]`, `[name][]`, `[name]`."""
_DEFINITION = re.compile(r"^ {0,3}\[([^\[\]]{1,100})\]:\s{0,9}<?([^\s>]{1,2000})", re.MULTILINE)
"""The definition of such an address: `[name]: https://acme.com`."""
_NAMED = re.compile(rf"<\s?[^<>\s@]{{1,256}}@({HOST_PATTERN})\s?>")
_HOST_IN_NAME = re.compile(rf"(?<![\w./\\%-]){HOST_PATTERN}(?![\w@.-])")
_LONGEST_NAME, _MOST_WORDS = 200, 3


def list_links(text: str) -> Iterator[tuple[str, str]]:
    """Yield the words and the address of each link."""
    for found in _IN_SIGNS.finditer(text):
        words = found["a"] or found["c"] or found["e"] or found["g"]
        yield words, found["b"] or found["d"] or found["f"] or found["h"]
    if "[/url" in text.lower():
        yield from ((_ANY_TAG.sub("", found[2]), found[1]) for found in _BBCODE.finditer(text))
    if "</" in text or "<a" in text.lower():
        yield from _list_in_html(text)
    addresses: dict[str, str] = {}
    for found in _DEFINITION.finditer(text) if "]:" in text else ():
        addresses.setdefault(_fold_label(found[1]), found[2])
    for found in _REFERENCE.finditer(text) if addresses else ():
        yield found[1], addresses.get(_fold_label(found[2] or found[1]), "")


def _list_in_html(text: str) -> Iterator[tuple[str, str]]:
    tags = list(_TAG.finditer(text))
    ends = (*(tag.start() for tag in tags[1:]), len(text))
    for tag, end in zip(tags, ends, strict=False):
        target = "" if tag[1] else _find_href(tag[2])
        if target:
            words = _ANY_TAG.sub("", text[tag.end() : min(end, tag.end() + 4 * _LONGEST_NAME)])
            yield unescape_html(words), unescape_html(target)


def _find_href(attributes: str) -> str:
    for found in _ATTRIBUTE.finditer(attributes):
        if found[1].lower() == "href":
            return found[2] or found[3] or found[4] or ""
    return ""


def _fold_label(label: str) -> str:
    return " ".join(label.split()).casefold()


def list_named_hosts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the host in the name before an email address, and the host of the address:
    `ann@acme.com <ann@else.com>`."""
    for found in _NAMED.finditer(text) if "<" in text and "@" in text else ():
        name = _find_name(text[max(0, found.start() - _LONGEST_NAME) : found.start()])
        for host in _HOST_IN_NAME.findall(name):
            ending = host.rpartition(".")[2]
            is_initial = host.index(".") == 1
            if ending.islower() and ending in ENDINGS and not is_initial:
                yield host.lower(), found[1].lower()


def _find_name(before: str) -> str:
    """Find the name at the end of the text before an email address: the words in quotes, or the
    last few words after a separator. Of a longer text, only the last word counts."""
    before = before.rstrip()
    if before.endswith('"'):
        return before[:-1].rpartition('"')[2]
    name = re.split(r"[,;:<>\n]", before)[-1]
    words = name.split()
    return name if len(words) <= _MOST_WORDS else words[-1]
