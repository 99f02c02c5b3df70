"""The language of the code: the words of the glossary, and how functions, classes, docstrings and
imports read."""

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests.source_tree import PRODUCT, ROOT, Module, assert_none, modules, product

GLOSSARY = ROOT / "docs" / "internals" / "glossary.md"
MAX_WORDS = 60

BAD_OPENING = re.compile(r"(What|Who|Whom|Whose|Whether|That|Of|By|How)\b")
BARE_PARTICIPLE = re.compile(
    r"_*([a-z]+ed|shown|told|made|kept|given|sent|seen|known|found|held|done|gone|left|taken|written|lost|chosen|drawn"
    r"|hidden|broken|meant|built|met|put_away|born|paid|heard|read_out|won|led|said|thought|understood)$"
)
VERBS_THAT_LOOK_LIKE_PARTICIPLES = frozenset(
    {"embed", "exceed", "feed", "need", "proceed", "seed", "speed"}
)
NAMED_BY_OTHERS = frozenset({"Command", "Config", "Media", "Meta", "Params"})
"""Classes that Django, Pydantic and the tool API look up by their name."""
BRITISH = re.compile(
    r"\b\w*((organ|recogn|serial|normal|author|summar)is[aei]|(behavi|col|fav|hon)our|licence|catalogue)\w*",
    re.I,
)
READ_BY_PEOPLE = (".py", ".html", ".js", ".css", ".md", ".yaml", ".toml", ".conf", ".service")

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module


@cache
def read_tables() -> list[list[str]]:
    """Return the rows of the glossary's tables, without the header rows."""
    parts = GLOSSARY.read_text(encoding="utf-8").split("\n## ")
    tables = [[line for line in part.splitlines() if line.startswith("| ")][1:] for part in parts]
    assert len(tables) == 3
    return tables


@cache
def glossary() -> tuple[tuple[str, str, str, tuple[str, ...]], ...]:
    """Return (word, name in code, meaning, words to avoid) for each row."""
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in read_tables()[0]]
    return tuple(
        (word, code.strip("`"), meaning, tuple(re.findall(r"`([^`]+)`", avoid)))
        for word, code, meaning, avoid in cells
    )


def has_bad_opening(docstring: str) -> bool:
    return BAD_OPENING.match(docstring) is not None


def is_bare_participle(name: str) -> bool:
    return (
        BARE_PARTICIPLE.fullmatch(name) is not None
        and name.strip("_") not in VERBS_THAT_LOOK_LIKE_PARTICIPLES
    )


def may_be_an_adjective(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return True for properties and class methods: they may be named by an adjective, as in
    `ToolResult.failed`."""
    names = {ast.unparse(decorator).rpartition(".")[2] for decorator in function.decorator_list}
    return bool(names & {"property", "cached_property", "setter", "classmethod"})


def repeated_names(named: Iterable[tuple[str, str]]) -> list[str]:
    """List the names that are used more than once."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, place in named:
        places[name].append(place)
    return [
        f"{name}: {', '.join(found)}" for name, found in sorted(places.items()) if len(found) > 1
    ]


def import_faults(tree: ast.Module, ours: frozenset[str]) -> list[str]:
    """List the deviations of a file's imports of our packages from the project's style.

    The style: imports are absolute; a module is imported either whole (`from package import
    module`) or in parts (`from package.module import name`), but not both; imports never rename our
    names.
    """
    faults, whole, parts = [], set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            faults += [
                f"import {a.name}"
                for a in node.names
                if a.name.partition(".")[0] in {"agents", "tools", "gadget_site"}
            ]
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            faults.append(f"relative import of {node.module}")
        if (node.module or "").partition(".")[0] not in {"agents", "tools", "gadget_site"}:
            continue
        for alias in node.names:
            if alias.asname:
                faults.append(f"{alias.name} as {alias.asname}")
            if (name := f"{node.module}.{alias.name}") in ours:
                whole.add(name)
            else:
                parts.add(node.module or "")
    return [*faults, *(f"{name} is imported whole and in parts" for name in sorted(whole & parts))]


def documented_attributes(class_: ast.ClassDef) -> list[str]:
    """List the names in the section `Attributes` of the docstring."""
    section = (ast.get_docstring(class_) or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^    (\w+(?:, \w+)*): ", section, re.M)
    return [name for row in rows for name in row.split(", ")]


def names_in_class(class_: ast.ClassDef) -> set[str]:
    """Collect the names that the class and its bases assign, define or use; parameters
    count, too."""
    names: set[str] = set()
    for node in ast.walk(class_):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
    bases = {ast.unparse(base).rpartition(".")[2] for base in class_.bases} - {class_.name}
    return names.union(*(names_in_class(each) for each in classes() if each.name in bases))


@cache
def classes() -> tuple[ast.ClassDef, ...]:
    return tuple(node for _, node in definitions() if isinstance(node, ast.ClassDef))


def words_in(name: str) -> set[str]:
    """Split an identifier into its lower-case words."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def definitions() -> list[tuple[Module, Definition]]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    return [
        (module, node)
        for module in product()
        for node in ast.walk(module.tree)
        if isinstance(node, kinds)
    ]


def texts_of_the_project() -> list[Path]:
    """List the files that people read, except for tests, the glossary's own table and third-party
    code."""
    folders = [ROOT / name for name in (*PRODUCT, "templates", "static", "docs", "deploy")]
    paths = [
        path
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.suffix in READ_BY_PEOPLE
    ]
    paths += [path for path in sorted(ROOT.iterdir()) if path.suffix in READ_BY_PEOPLE]
    return [path for path in paths if path != GLOSSARY and "vendor" not in path.parts]


def place(module: Module, node: ast.AST) -> str:
    return f"{module.place}:{getattr(node, 'lineno', 1)}"


# The glossary


def test_the_glossary_has_few_words_without_duplicates() -> None:
    words = [word for word, *_ in glossary()]
    assert 20 <= len(words) <= MAX_WORDS
    assert len(set(words)) == len(words)
    assert all(meaning for _, _, meaning, _ in glossary())


@pytest.mark.parametrize("word", [word for word, *_ in glossary()])
def test_each_word_of_the_glossary_exists_in_the_code(word: str) -> None:
    name = next(code for each, code, *_ in glossary() if each == word)
    assert resolve(name) is not None


@pytest.mark.parametrize("row", read_tables()[2])
def test_each_outside_name_that_keeps_an_old_word_exists_in_the_code(row: str) -> None:
    sources = [module.path.read_text(encoding="utf-8") for module in product()]
    for name in re.findall(r"`([^`]+)`", row):
        parts = re.compile(r"[^\"\n]*".join(map(re.escape, name.strip("/").split("{id}"))))
        assert any(map(parts.search, sources)), f"there is no {name}"


def resolve(name: str) -> object:
    """Return the object with this dotted name: import the longest part that is a module, and follow
    the attributes from there."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"there is no {name}")


def test_no_name_uses_a_word_that_the_glossary_replaces() -> None:
    avoided = {word for *_, words in glossary() for word in words if " " not in word}
    offences = [
        f"{place(module, node)} {node.name}"
        for module, node in definitions()
        if not isinstance(node, ast.Module) and words_in(node.name) & avoided
    ]
    assert_none(offences, f"no name contains {', '.join(sorted(avoided))}")


# One word for one thing

FORMS = {
    "answer": {"answer", "answers", "answered", "answering", "answerer"},
    "claim": {"claim", "claims", "claimed", "unclaimed"},
    "draft": {"draft", "drafts", "drafted"},
    "message": {"message", "messages"},
    "delivery": {"delivery", "deliveries", "deliver", "delivered"},
    "replay": {"replay", "replays", "replayed"},
    "mark": {"mark", "marks", "marked"},
}
HTTP = frozenset({"status_code", "headers", "content", "cookies", "streaming_content"})
WRONG_ON_PAGES = {
    "notices": re.compile(r"\bmessages?\b", re.I),
    "playback": re.compile(r"\breplay\b(?!/)", re.I),
    "simulator": re.compile(r"(?<!policy )(?<!Policy )\bdrafts?\b(?![-\w])", re.I),
}
"""The word that the pages in a template folder must not use for their subject."""


@cache
def single_meanings() -> dict[str, tuple[bool, tuple[str, ...], tuple[str, ...]]]:
    """Return the glossary's table of words with a single meaning: a flag, places and exceptions by
    word. If the flag is set, the word is forbidden at these places; if not, it is forbidden
    everywhere else."""
    rows = [row.strip("|").split("|") for row in read_tables()[1]]
    found = {}
    for word, _, places, _ in rows:
        before, _, exceptions = places.partition("; there ")
        denied = before.strip().startswith("everywhere but")
        found[word.strip()] = (
            denied,
            tuple(re.findall(r"`([^`]+)`", before)),
            tuple(re.findall(r"`([^`]+)`", exceptions)),
        )
    return found


def is_at(place: str, name: str, entry: str) -> bool:
    """Return True if an entry of the table applies to the name or to the file that contains it."""
    if " " in entry:
        qualifier, word = entry.split()
        words = [each.lower() for each in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
        return any(
            first == qualifier and second in FORMS[word] for first, second in pairwise(words)
        )
    if entry.endswith("/"):
        return place.startswith(entry)
    if entry.endswith(".py"):
        return f"/{place}".endswith(f"/{entry}")
    return (
        name.lstrip("_").startswith(entry)
        if entry.endswith("_")
        else name.lstrip("_") == entry.lstrip("_")
    )


def has_wrong_word(place: str, name: str, word: str) -> bool:
    """Return True if the name has the word at a place where it has another meaning."""
    if not words_in(name) & FORMS[word]:
        return False
    denied, places, exceptions = single_meanings()[word]
    if denied:
        return any(is_at(place, name, entry) for entry in places) and not any(
            is_at(place, name, e) for e in exceptions
        )
    return not any(is_at(place, name, entry) for entry in places)


def assigned_names(module: Module) -> set[str]:
    """Return the names that a module gives to functions, classes, parameters, variables and
    itself."""
    found = {module.path.stem}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def find_http_answers(tree: ast.Module) -> list[int]:
    """List the lines in which a variable called `answer` is used as an HTTP response."""
    found = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in HTTP
        and isinstance(node.value, ast.Name)
        and node.value.id == "answer"
    ]
    return sorted(set(found))


def test_the_table_has_a_row_for_each_word() -> None:
    assert single_meanings().keys() == FORMS.keys()


@pytest.mark.parametrize("word", FORMS)
def test_each_word_means_one_thing(word: str) -> None:
    offences = [
        f"{module.place} {name}"
        for module in product()
        for name in sorted(assigned_names(module))
        if has_wrong_word(module.place, name, word)
    ]
    assert_none(
        offences,
        f"{word!r} means one thing; the last table of the glossary has the words for others",
    )


def test_an_http_response_is_not_called_answer() -> None:
    offences = [
        f"{module.place}:{line}" for module in modules() for line in find_http_answers(module.tree)
    ]
    assert_none(offences, "HTTP has responses")


@pytest.mark.parametrize("folder", WRONG_ON_PAGES)
def test_pages_call_their_subject_by_its_word(folder: str) -> None:
    offences = [
        f"{path.relative_to(ROOT)}:{number} {found[0]}"
        for path in sorted((ROOT / "templates" / folder).glob("*.html"))
        for number, line in enumerate(
            re.sub(
                r"(?s)\{[{%#].*?[}%#]\}|(?<==)\"[^\"{]*\"", blank, path.read_text()
            ).splitlines(),
            1,
        )
        if (found := WRONG_ON_PAGES[folder].search(line))
    ]
    assert_none(offences, "the glossary has the word for this")


def blank(found: re.Match[str]) -> str:
    """Return as many line breaks as the match has."""
    return "\n" * found[0].count("\n")


# Names


def test_functions_are_not_named_by_a_bare_participle() -> None:
    offences = [
        f"{place(module, node)} {node.name}"
        for module, node in definitions()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and is_bare_participle(node.name)
        and not may_be_an_adjective(node)
    ]
    assert_none(offences, "a function is a verb: `show_card`, not `shown`")


def test_every_class_has_a_unique_name() -> None:
    named = [
        (node.name, place(module, node))
        for module, node in definitions()
        if isinstance(node, ast.ClassDef)
    ]
    assert_none(
        repeated_names(each for each in named if each[0] not in NAMED_BY_OTHERS),
        "one name, one class",
    )


# Docstrings


def test_docstrings_start_with_what_the_code_does() -> None:
    offences = [
        f"{place(module, node)} {ast.get_docstring(node)}"
        for module, node in definitions()
        if has_bad_opening(ast.get_docstring(node) or "")
    ]
    assert_none(
        offences,
        "a docstring opens with a verb or a noun, not with What, Who, Whether, That, Of, By, How",
    )


def test_docstrings_name_attributes_that_exist() -> None:
    offences = [
        f"{place(module, node)} {node.name}: {name}"
        for module, node in definitions()
        if isinstance(node, ast.ClassDef)
        for name in documented_attributes(node)
        if name not in names_in_class(node)
    ]
    assert_none(offences, "the section Attributes names what the class has")


# Imports


def test_imports_have_one_style() -> None:
    ours = frozenset(module.name for module in modules())
    offences = [
        f"{module.place}: {fault}"
        for module in product()
        for fault in import_faults(module.tree, ours)
    ]
    assert_none(
        offences, "absolute imports; a module whole or its names, not both; nothing of ours renamed"
    )


# Spelling


def test_the_spelling_is_american() -> None:
    offences = []
    for path in texts_of_the_project():
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        offences += [
            f"{path.relative_to(ROOT)}:{n} {m.group()}"
            for n, line in enumerate(lines, 1)
            for m in BRITISH.finditer(line)
        ]
    assert_none(offences, "American spelling")


# The checks themselves


def test_the_checks_find_faults() -> None:
    renamed = 'class A:\n    """A.\n\n    Attributes:\n        b, c: two.\n    """\n\n    b: int'
    (class_,) = ast.parse(renamed).body
    assert isinstance(class_, ast.ClassDef)
    assert {*documented_attributes(class_)} - names_in_class(class_) == {"c"}
    assert has_bad_opening("What the page shows.")
    assert not has_bad_opening("Return what the page shows.")
    assert is_bare_participle("_shown")
    assert is_bare_participle("folded")
    assert not is_bare_participle("feed")
    assert not is_bare_participle("fold_lines")
    assert repeated_names([("Page", "a.py"), ("Page", "b.py"), ("Line", "a.py")]) == [
        "Page: a.py, b.py"
    ]
    assert words_in("_RecordingSeat2") == {"recording", "seat"}
    assert has_wrong_word("agents/runs/engine/lease.py", "claim", "claim")
    assert has_wrong_word("agents/providers/base.py", "read_answer", "answer")
    assert not has_wrong_word("agents/providers/base.py", "answer_timeout_s", "answer")
    assert has_wrong_word("agents/policy/shadow.py", "save_draft", "draft")
    assert not has_wrong_word("agents/policy/shadow.py", "save_policy_draft", "draft")
    assert has_wrong_word("agents/notices/texts.py", "OutgoingMessage", "message")
    assert not has_wrong_word("agents/triggers/models.py", "ReceivedMessage", "message")
    assert not has_wrong_word("agents/runs/actions.py", "add_message", "message")
    assert has_wrong_word("agents/web/sockets/consumers.py", "delivery", "delivery")
    assert has_wrong_word("agents/web/views/runs.py", "replay_page", "replay")
    assert has_wrong_word("agents/web/panel/lines.py", "StatusMark", "mark")
    assert not has_wrong_word(
        "agents/runs/engine/unknown_outcomes.py", "mark_outcome_unknown", "mark"
    )
    assert find_http_answers(ast.parse("answer = get()\nassert answer.status_code == 200")) == [2]
    assert find_http_answers(ast.parse("run.answer.startswith('a')")) == []
    assert WRONG_ON_PAGES["notices"].search("Your messages")
    assert WRONG_ON_PAGES["simulator"].search("Save draft")
    assert not WRONG_ON_PAGES["simulator"].search("Save policy draft")
    assert BRITISH.search("the organi" + "sation's name")
    assert BRITISH.search("its colo" + "urs")
    assert not BRITISH.search("the organization's colors and behavior")


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("import agents.runs.events", "import agents.runs.events"),
        ("from . import events", "relative import of None"),
        ("from agents.runs import events as e", "events as e"),
        (
            "from agents.runs import events\nfrom agents.runs.events import publish",
            "imported whole and in parts",
        ),
    ],
)
def test_another_style_of_import_is_detected(source: str, fault: str) -> None:
    faults = import_faults(ast.parse(source), frozenset({"agents.runs.events"}))
    assert any(fault in each for each in faults)
