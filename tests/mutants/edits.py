"""Find the small edits that weaken a guard: a check left out, a comparison off by one, a filter
without a condition."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_REVERSED: dict[type[ast.cmpop], str] = {ast.Lt: ">", ast.LtE: ">", ast.Gt: "<", ast.GtE: "<"}
_TIMES = re.compile(r"now|monotonic|deadline|_at\b|_by\b|until|_s\b|patience")
_LOOKUPS = frozenset({"filter", "exclude", "get", "Q", "When"})
_CHECKS = (
    "_check",
    "check",
    "_refuse",
    "refuse",
    "demand",
    "_demand",
    "_require",
    "require",
    "assert_",
)
_LEAVES = (ast.Raise, ast.Return, ast.Continue, ast.Break)


@dataclass(frozen=True)
class Edit:
    """One weakened guard: replaces `before`, which starts at this offset of the source, by `after`.

    Attributes:
        function: qualified name of the function or class around it; empty at module level.
        kind: the operator that found it.
        start: offset in characters.
    """

    function: str
    kind: str
    start: int
    before: str
    after: str
    repeat: int = 0

    @property
    def name(self) -> str:
        """A name that stays the same when other lines of the file move."""
        again = f" #{self.repeat + 1}" if self.repeat else ""
        return f"{self.function or 'module'}: {_one_line(self.before)} -> {_one_line(self.after) or 'nothing'}{again}"

    @property
    def rank(self) -> str:
        """A stable, arbitrary rank, so that a sample stays the same from day to day."""
        return hashlib.sha256(self.name.encode()).hexdigest()

    def apply(self, source: str) -> str:
        """Return the source with this edit."""
        end = self.start + len(self.before)
        assert source[self.start : end] == self.before
        return source[: self.start] + self.after + source[end:]


def find_edits(source: str) -> list[Edit]:
    """Return every edit of a Python source, in the order of its lines."""
    text = _Text(source)
    found: dict[tuple[str, str, str], int] = {}
    edits = []
    for function, node in _walk(ast.parse(source), ""):
        for kind, operator in _OPERATORS.items():
            for part, after in operator(text, node):
                before = text.of(part)
                key = (function, before, after)
                edit = Edit(function, kind, text.start(part), before, after, found.get(key, 0))
                found[key] = edit.repeat + 1
                edits.append(edit)
    return edits


class _Text:
    """A source with the offsets of its lines; nodes count columns in bytes."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def start(self, node: _Part) -> int:
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: _Part) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)

    def of(self, node: _Part) -> str:
        return self._source[self.start(node) : self.end(node)]

    def in_brackets(self, node: ast.expr) -> str:
        """Return the text of an operand, with the brackets that it needs next to an operator."""
        needs = isinstance(node, ast.NamedExpr | ast.BoolOp | ast.IfExp | ast.Compare | ast.Lambda)
        return f"({self.of(node)})" if needs else self.of(node)

    def _offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())


_Part = ast.expr | ast.stmt | ast.keyword
_Found = Iterator[tuple[_Part, str]]


def _walk(node: ast.AST, function: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        inner = function
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{function}.{child.name}".strip(".")
        yield inner, child
        yield from _walk(child, inner)


def _leave_out_guard(_: _Text, node: ast.AST) -> _Found:
    """Disable an `if` that only leaves the function or loop."""
    if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], _LEAVES):
        yield node.test, "False"


def _leave_out_operand(text: _Text, node: ast.AST) -> _Found:
    """Remove one operand of `and`/`or`."""
    if isinstance(node, ast.BoolOp):
        word = " and " if isinstance(node.op, ast.And) else " or "
        for left_out in node.values:
            if not _compares_with_none(left_out):
                kept = word.join(
                    f"({text.of(each)})" for each in node.values if each is not left_out
                )
                yield node, f"({kept})"


def _compares_with_none(node: ast.expr) -> bool:
    """Return True for a comparison with None, which serves the type checker: without it, the next
    operand raises an error."""
    return isinstance(node, ast.Compare) and ast.unparse(node.comparators[-1]) == "None"


def _turn_comparison(text: _Text, node: ast.AST) -> _Found:
    """Invert a comparison, or shift it by one."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        left, right = text.in_brackets(node.left), text.in_brackets(node.comparators[0])
        sign = _COMPARISONS[type(node.ops[0])]
        # Invert comparisons of times: no time is exactly on a bound, so a shift changes nothing.
        if _TIMES.search(f"{left} {right}"):
            sign = _REVERSED.get(type(node.ops[0]), sign)
        yield node, f"{left} {sign} {right}"


def _leave_out_not(text: _Text, node: ast.AST) -> _Found:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, f"({text.of(node.operand)})"


def _leave_out_condition(text: _Text, node: ast.AST) -> _Found:
    """Widen a lookup by removing one of its conditions."""
    if not isinstance(node, ast.Call) or _called(node) not in _LOOKUPS:
        return
    parts: list[_Part] = [*node.args, *node.keywords]
    if _called(node) in {"Q", "get", "When"} and (
        len(parts) == 1 or not node.keywords or _has_text_first(node)
    ):
        return  # no condition can be left out, or it is the `get` of a dict or a router
    for left_out in parts:
        if not _is_positional_lookup(node, left_out):
            kept = ", ".join(text.of(each) for each in parts if each is not left_out)
            yield node, f"{text.of(node.func)}({kept})"


def _has_text_first(node: ast.Call) -> bool:
    return bool(node.args) and isinstance(node.args[0], ast.Constant)


def _is_positional_lookup(node: ast.Call, part: _Part) -> bool:
    """Return True for `mapping.get(key)` and `filter(function, values)`, which do not look up
    rows."""
    return part in node.args and not isinstance(part, ast.Call | ast.BinOp | ast.UnaryOp | ast.Name)


def _leave_out_column(text: _Text, node: ast.AST) -> _Found:
    """Remove a condition from `update(Model, changes, where)`."""
    if isinstance(node, ast.Call) and _called(node) == "update" and len(node.args) == 3:
        where = node.args[2]
        if isinstance(where, ast.Dict) and len(where.keys) > 1:
            pairs = [
                (key, value)
                for key, value in zip(where.keys, where.values, strict=True)
                if key is not None
            ]
            for left_out, _ in pairs:
                kept = [
                    f"{text.of(key)}: {text.of(value)}"
                    for key, value in pairs
                    if key is not left_out
                ]
                yield where, "{" + ", ".join(kept) + "}"


def _leave_out_check(_: _Text, node: ast.AST) -> _Found:
    """Remove a call that only checks."""
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and _called(node.value).startswith(_CHECKS)
    ):
        yield node, "pass"


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


_OPERATORS: dict[str, Callable[[_Text, ast.AST], _Found]] = {
    "guard": _leave_out_guard,
    "operand": _leave_out_operand,
    "comparison": _turn_comparison,
    "not": _leave_out_not,
    "condition": _leave_out_condition,
    "column": _leave_out_column,
    "check": _leave_out_check,
}


def _one_line(text: str) -> str:
    for broken, whole in (
        (r"\s+", " "),
        (r"([(\[]) ", r"\1"),
        (r",? ([)\]])", r"\1"),
        (r" (\.\w)", r"\1"),
    ):
        text = re.sub(broken, whole, text)
    return text.strip()
