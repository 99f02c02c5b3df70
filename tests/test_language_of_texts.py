"""One word for one thing in texts and docstrings; `test_language` has the checks of names."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

import pytest

from tests.source_tree import ROOT, Module, assert_none, modules, product
from tests.test_language import (
    WRONG_ON_PAGES,
    has_wrong_word,
    is_at,
    place,
    texts_of_the_project,
)

WRONG_ANSWER = re.compile(
    r"\b(?:address|connection|database|folder|gadget|grant|host|part|place|provider|receiver|redis"
    r"|server|service|site|source|title|vendor|website|where)s?(?:['’]s)?[\s\"'})]+"
    r"(?:(?:has|had|to|not|never)\s+)?answer(?:s|ed|ing)?\b"
    r"|\b(?:does|do|did)\s+not\s+answer\b|\bmodels?\s+(?:has\s+|had\s+)?answer(?:s|ed)?\b"
    r"|\bmodel(?:['’]s|\s+is)\s+answering\b|\b(?:longest|whole|earlier)\s+answer\b"
    r"|\banswer(?:\s+in\s+tokens|[\s\"']*is\s+[1-5]\d\d)\b"
    r"|\banswer(?:s|ed)\s+(?:with|via|over|[1-5]\d\d)\b|\bnothing\s+answers\b",
    re.I,
)
"""Matches texts in which a server, a model or a standing grant answers."""
HASHED_TEXTS = frozenset({("tools/office/tools/web.py", "website answers")})
"""Texts in the definitions of tools that must not change, because cards and grants identify a
definition by its hash."""
FURTHER_PLACES = {
    "claim": ("gateway/receipts.py",),
    "message": ("agents/triggers/", "views/triggers.py", "notices/texts.py"),
}
"""Further places, by word, where texts may use the word but names may not: for a receipt's claims
and for received messages."""
HEADERS = re.compile(r"\bMessage-ID\b")


def find_wrong_answers(text: str) -> list[tuple[int, str]]:
    """List the lines in which a server, a model or a standing grant "answers", each with the
    matched words."""
    return [
        (text.count("\n", 0, found.start()) + 1, found[0]) for found in WRONG_ANSWER.finditer(text)
    ]


TABLE_OF_ENDINGS = "tools/contract/host_endings.py"


def has_wrong_prose(file: str, text: str, word: str) -> bool:
    """Return True if a text of several words uses the word in a place where it has another
    meaning."""
    return (
        " " in text
        and has_wrong_word(file, HEADERS.sub("", text), word)
        and not any(is_at(file, text, entry) for entry in FURTHER_PLACES[word])
    )


def find_strings(module: Module) -> Iterator[tuple[ast.Constant, str]]:
    """Find the string constants and docstrings of a module, except in the generated table."""
    if module.place == TABLE_OF_ENDINGS:
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node, node.value


def test_servers_and_models_respond_and_standing_grants_approve() -> None:
    offences = [
        f"{name}:{line} {words!r}"
        for path in texts_of_the_project()
        if path.parent.name != "migrations"
        for name in [path.relative_to(ROOT).as_posix()]
        for line, words in find_wrong_answers(path.read_text(encoding="utf-8"))
        if (name, words) not in HASHED_TEXTS
    ]
    assert_none(
        offences, "a person answers; a server or a model responds, and a standing grant approves"
    )


@pytest.mark.parametrize("word", FURTHER_PLACES)
def test_texts_and_docstrings_use_each_word_for_one_thing(word: str) -> None:
    offences = [
        f"{place(module, node)} {text[:80]!r}"
        for module in product()
        for node, text in find_strings(module)
        if has_wrong_prose(module.place, text, word)
    ]
    assert_none(offences, f"{word!r} means one thing; the glossary has the words for others")


def is_about_policy(file: str) -> bool:
    """Return True if "draft" means a policy draft in the texts of this file."""
    return file.startswith("agents/policy/") or file.endswith(
        ("views/simulator.py", "frame/places.py")
    )


def test_texts_about_policy_drafts_call_them_policy_drafts() -> None:
    offences = [
        f"{place(module, node)} {text[:80]!r}"
        for module in product()
        if is_about_policy(module.place)
        for node, text in find_strings(module)
        if " " in text and WRONG_ON_PAGES["simulator"].search(" ".join(text.split()))
    ]
    assert_none(offences, "a draft is a text that an employee stored; this is a policy draft")


@pytest.mark.parametrize(
    "text",
    [
        'f"{where} answers"',
        "the server\n    answered 503",
        "Redis does not answer",
        "The grant answers cards",
        "it answered with an error",
        "Nothing answers there",
        "The model answers",
        "Longest answer (seconds)",
        'the answer "\n        "is 409',
    ],
)
def test_an_answering_server_is_found(text: str) -> None:
    assert [line for line, _ in find_wrong_answers(text)] == [1]


@pytest.mark.parametrize("text", ["Ada answered: yes", "The server writes an answer"])
def test_other_uses_of_answer_are_allowed(text: str) -> None:
    assert not find_wrong_answers(text)


@pytest.mark.parametrize(
    ("file", "text", "word", "is_wrong"),
    [
        ("agents/insight/metrics.py", "Runs that no worker has claimed.", "claim", True),
        ("agents/insight/metrics.py", "claimed", "claim", False),
        ("agents/approvals/attention.py", "A claim on a card.", "claim", False),
        ("agents/gateway/receipts.py", "The claims of a receipt.", "claim", False),
        ("agents/deliveries/engine.py", "Send the next message.", "message", True),
        ("agents/deliveries/channels/mail.py", "Set the Message-ID.", "message", False),
        ("agents/triggers/receiving.py", "Receive a message.", "message", False),
        ("agents/runs/actions.py", "Add a message.", "message", False),
    ],
)
def test_a_word_in_prose_is_wrong_outside_its_places(
    file: str, text: str, word: str, is_wrong: bool
) -> None:
    assert has_wrong_prose(file, text, word) is is_wrong


# Comments

FOR_TOOLS = re.compile(r"# (?:noqa|type:|fmt:|\W*\d+\W*$)")
"""Matches comments that must stay on their line: instructions to tools, and numbers of steps."""


def find_far_comments(source: str) -> list[int]:
    """List the lines with a comment behind a closing bracket at the start of the line.

    The formatter creates such lines when it breaks a long line that ends with a comment.
    """
    found, line, first = [], 0, ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.start[0] != line and token.string.strip():
            line, first = token.start[0], token.string
        if token.type == tokenize.COMMENT and first in {")", "]", "}"}:
            found += [] if FOR_TOOLS.match(token.string) else [line]
    return found


def test_no_comment_follows_a_closing_bracket() -> None:
    offences = [
        f"{module.place}:{line}"
        for module in modules()
        for line in find_far_comments(module.path.read_text(encoding="utf-8"))
    ]
    assert_none(offences, "put the comment above the statement")


def test_a_comment_behind_a_closing_bracket_is_found() -> None:
    assert find_far_comments("go(\n    1\n)  # because of this\n") == [3]
    assert find_far_comments("# because of this\ngo(\n    1\n)  # noqa: X1\nx = (1)  # 2\n") == []
