"""Evaluate parsed templates step by step: only nodes that are listed here, and only while the allowance lasts."""

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import FunctionType
from typing import Any

from jinja2 import Undefined, nodes

from agents.providers.expression_allowance import STEP, ExpressionError
from agents.providers.expression_filters import FILTERS, TESTS
from agents.providers.expression_values import ValueOperations

MAX_TEXT = 100_000
_SIGNS: dict[type[nodes.Node], str] = {
    nodes.Add: "+",
    nodes.Sub: "-",
    nodes.Mul: "*",
    nodes.Div: "/",
    nodes.FloorDiv: "//",
    nodes.Mod: "%",
    nodes.Pow: "**",
}


class Evaluator:
    """One evaluation of one template.

    Args:
        names: the names that the template can use.
        values: the operations on values, which spend the allowance.
    """

    def __init__(self, names: Mapping[str, Any], values: ValueOperations) -> None:
        self._names: ChainMap[str, Any] = ChainMap({"range": values.range}, dict(names))
        self._values = values
        self._pieces: list[str] = []
        self._length = 0

    def value(self, node: Any) -> Any:
        """Return the value of an expression."""
        self._values.allowance.spend(STEP)
        return _VALUES[type(node)](self, node)

    def text(self, body: Iterable[nodes.Node]) -> str:
        """Return the text of a template's body."""
        self._run(body)
        return "".join(self._pieces)

    def _run(self, body: Iterable[nodes.Node]) -> None:
        for node in body:
            self._values.allowance.spend(STEP)
            _STATEMENTS[type(node)](self, node)

    def _output(self, node: Any) -> None:
        for part in node.nodes:
            piece = part.data if isinstance(part, nodes.TemplateData) else self._values.text(self.value(part))
            self._length += len(piece)
            if self._length > MAX_TEXT:
                raise ExpressionError(f"the text is longer than {MAX_TEXT} characters")
            self._pieces.append(piece)

    def _if(self, node: Any) -> None:
        for branch in (node, *node.elif_):
            if self.value(branch.test):
                return self._run(branch.body)
        return self._run(node.else_)

    def _for(self, node: Any) -> None:
        items = self._values.items(self.value(node.iter))
        outer = self._names
        try:
            if node.test is not None:
                items = [each for each in items if self._passes_filter(outer, node, each)]
            for index, each in enumerate(items):
                self._values.allowance.spend(STEP)
                self._names = outer.new_child({"loop": _build_loop_variable(index, len(items))})
                self._bind(node.target, each)
                self._run(node.body)
        finally:
            self._names = outer
        if not items:
            self._run(node.else_)

    def _passes_filter(self, outer: ChainMap[str, Any], node: Any, each: Any) -> bool:
        self._names = outer.new_child()
        self._bind(node.target, each)
        return bool(self.value(node.test))

    def _assign(self, node: Any) -> None:
        self._bind(node.target, self.value(node.node))

    def _bind(self, target: Any, value: Any) -> None:
        if isinstance(target, nodes.Name):
            self._names[target.name] = value
            return
        parts = self._values.items(value)
        if len(parts) != len(target.items):
            raise ExpressionError(f"{len(parts)} values for {len(target.items)} names")
        for name, part in zip(target.items, parts, strict=True):
            self._bind(name, part)

    def _name(self, node: Any) -> Any:
        return self._names[node.name] if node.name in self._names else self._values.build_missing(node.name)

    def _list(self, node: Any) -> list[Any]:
        return [self.value(each) for each in node.items]

    def _dict(self, node: Any) -> dict[Any, Any]:
        return {self.value(pair.key): self.value(pair.value) for pair in node.items}

    def _attribute(self, node: Any) -> Any:
        return self._values.attribute(self.value(node.node), node.attr)

    def _item(self, node: Any) -> Any:
        owner = self.value(node.node)
        if isinstance(node.arg, nodes.Slice):
            bounds = (node.arg.start, node.arg.stop, node.arg.step)
            return self._values.item(owner, slice(*(None if each is None else self.value(each) for each in bounds)))
        return self._values.item(owner, self.value(node.arg))

    def _call(self, node: Any) -> Any:
        function = self.value(node.node)
        if isinstance(function, Undefined):
            return function()
        if not isinstance(function, FunctionType | partial) and function != self._values.range:
            raise ExpressionError("only functions can be called")
        return function(*self._arguments(node), **self._options(node))

    def _filter(self, node: Any) -> Any:
        subject = self.value(node.node)
        return FILTERS[node.name](self._values, subject, *self._arguments(node), **self._options(node))

    def _test(self, node: Any) -> bool:
        return bool(TESTS[node.name](self._values, self.value(node.node), *self._arguments(node)))

    def _arguments(self, node: Any) -> list[Any]:
        return [self.value(each) for each in node.args]

    def _options(self, node: Any) -> dict[str, Any]:
        return {each.key: self.value(each.value) for each in node.kwargs}

    def _condition(self, node: Any) -> Any:
        if self.value(node.test):
            return self.value(node.expr1)
        return self._values.build_missing("else") if node.expr2 is None else self.value(node.expr2)

    def _and(self, node: Any) -> Any:
        return self.value(node.left) and self.value(node.right)

    def _or(self, node: Any) -> Any:
        return self.value(node.left) or self.value(node.right)

    def _not(self, node: Any) -> bool:
        return not self.value(node.node)

    def _compare(self, node: Any) -> bool:
        left = self.value(node.expr)
        for operand in node.ops:
            right = self.value(operand.expr)
            if not self._values.compare(operand.op, left, right):
                return False
            left = right
        return True

    def _concat(self, node: Any) -> str:
        return "".join([self._values.text(self.value(each)) for each in node.nodes])

    def _calculate(self, node: Any) -> Any:
        return self._values.calculate(_SIGNS[type(node)], self.value(node.left), self.value(node.right))

    def _negate(self, node: Any) -> Any:
        return self._values.calculate("-", 0, self.value(node.node))

    def _plus(self, node: Any) -> Any:
        return self._values.calculate("+", 0, self.value(node.node))


def _build_loop_variable(index: int, length: int) -> dict[str, Any]:
    return {
        "index": index + 1,
        "index0": index,
        "revindex": length - index,
        "revindex0": length - index - 1,
        "first": index == 0,
        "last": index == length - 1,
        "length": length,
    }


_STATEMENTS: dict[type[nodes.Node], Callable[[Evaluator, Any], None]] = {
    nodes.Output: Evaluator._output,
    nodes.If: Evaluator._if,
    nodes.For: Evaluator._for,
    nodes.Assign: Evaluator._assign,
}
_VALUES: dict[type[nodes.Node], Callable[[Evaluator, Any], Any]] = {
    nodes.Const: lambda _, node: node.value,
    nodes.Name: Evaluator._name,
    nodes.List: Evaluator._list,
    nodes.Tuple: Evaluator._list,
    nodes.Dict: Evaluator._dict,
    nodes.Getattr: Evaluator._attribute,
    nodes.Getitem: Evaluator._item,
    nodes.Call: Evaluator._call,
    nodes.Filter: Evaluator._filter,
    nodes.Test: Evaluator._test,
    nodes.CondExpr: Evaluator._condition,
    nodes.And: Evaluator._and,
    nodes.Or: Evaluator._or,
    nodes.Not: Evaluator._not,
    nodes.Compare: Evaluator._compare,
    nodes.Concat: Evaluator._concat,
    nodes.Neg: Evaluator._negate,
    nodes.Pos: Evaluator._plus,
    **dict.fromkeys(_SIGNS, Evaluator._calculate),
}
_SUPPORTED = frozenset(
    {nodes.Template, nodes.TemplateData, nodes.Pair, nodes.Keyword, nodes.Operand, nodes.Slice, *_STATEMENTS, *_VALUES}
)


def check_nodes(tree: nodes.Template) -> None:
    """Raise ExpressionError for an unsupported node, filter or test."""
    waiting: list[nodes.Node] = [tree]
    while waiting:
        node = waiting.pop()
        is_known = type(node) in _SUPPORTED
        if isinstance(node, nodes.Filter):
            is_known = node.node is not None and node.name in FILTERS
        elif isinstance(node, nodes.Test):
            is_known = node.name in TESTS
        elif isinstance(node, nodes.For):
            is_known = not node.recursive
        elif isinstance(node, nodes.Assign):
            is_known = isinstance(node.target, nodes.Name | nodes.Tuple)
        if not is_known or getattr(node, "dyn_args", None) or getattr(node, "dyn_kwargs", None):
            name = getattr(node, "name", "")
            raise ExpressionError(f"{type(node).__name__.lower()} {name}".rstrip() + " is not available")
        waiting.extend(node.iter_child_nodes())
