"""Everything that a tool declares is checked and converted once, when it is registered."""

from __future__ import annotations

import inspect
from functools import cached_property
from typing import Any

import pytest
from pydantic import BaseModel

from tools.contract import (
    FunctionTool,
    InvalidTool,
    Level,
    RateLimit,
    Recipe,
    Tool,
    ToolContext,
    ToolResult,
    tool,
)
from tools.contract.declarations import NORMALIZED_ELSEWHERE, read_declarations
from tools.testing import run_tool
from tools.toolbox import Toolbox

CONTRACT = (Tool, Recipe, FunctionTool)


class Fine(Tool):
    """A tool without any fault."""

    name = "test.fine"
    description = "Do nothing."
    level = Level.READ

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok({})


class Endless(BaseModel):
    """A model whose schema is not valid JSON."""

    limit: float = float("inf")


class Anything(BaseModel):
    """A model that has no schema."""

    model_config = {"arbitrary_types_allowed": True}
    thing: Fine


async def _wait(*_: object) -> None:
    return None


def _fail(_: object) -> Any:
    raise RuntimeError("the key is sk-123")


def build(**attributes: Any) -> Tool:
    """Return a tool that differs from `Fine` in these attributes; its class is `Wrong` in a module
    `plugin`."""
    made: type[Tool] = type("Wrong", (Fine,), {"__module__": "plugin", **attributes})
    return made()


WRONG: dict[str, tuple[Any, str]] = {
    "name": (None, "name is None."),
    "description": (["Do it."], "description is ['Do it.']."),
    "display_name": (5, "display_name is 5."),
    "level": (
        "raed",
        "level is 'raed'. Expected 'read', 'draft', 'write' or 'destructive'; for example: level = ",
    ),
    "version": (1.0, "version is 1.0."),
    "author": (None, "author is None."),
    "Params": ({"text": str}, "Params is a value of type dict."),
    "Output": (Level.READ, "Output is "),
    "capabilities": ("admin", "capabilities is 'admin'."),
    "features": ({"reports": True}, "features is {'reports': True}."),
    "modes": ("code", "modes is 'code'."),
    "idempotent": ("perhaps", "idempotent is 'perhaps'."),
    "transactional": (None, "transactional is None."),
    "volatile": ([], "volatile is []."),
    "open_world": (2, "open_world is 2."),
    "returns_outside_text": ("", "returns_outside_text is ''."),
    "destination_params": ([1], "destination_params is [1]."),
    "plain_params": ("note", "plain_params is 'note'."),
    "carries_requests": (object(), "carries_requests is a value of type object."),
    "suspends": ("later", "suspends is 'later'."),
    "cacheable_s": (float("nan"), "cacheable_s is nan."),
    "rate_limit": (RateLimit("many", 60), "rate_limit is a value of type RateLimit. calls:"),  # type: ignore[arg-type]
    "timeout_s": (float("inf"), "timeout_s is inf."),
    "source": (b"\xff", "source is a value of type bytes."),
    "do_not_call_in_templates": (False, "do_not_call_in_templates is False."),
}


def test_each_attribute_in_the_contract_has_a_rule_and_an_example() -> None:
    for cls in CONTRACT:
        rules = read_declarations(cls)
        for name, member in vars(cls).items():
            if name.startswith("_"):
                continue
            if isinstance(member, property | cached_property):
                assert name in rules.computed, name
            elif inspect.isfunction(member):
                assert name in rules.returned or name in NORMALIZED_ELSEWHERE, name
            else:
                assert rules.attributes[name].example, (
                    f"{cls.__name__}.{name} needs an annotation with an Example"
                )
    assert WRONG.keys() == read_declarations(Tool).attributes.keys()


@pytest.mark.parametrize(("attribute", "wrong"), WRONG.items())
def test_a_tool_with_an_invalid_attribute_is_left_out_with_a_reason(
    attribute: str, wrong: tuple[Any, str]
) -> None:
    value, sentence = wrong
    with pytest.raises(InvalidTool) as refused:
        Toolbox().register(build(**{attribute: value}))
    text = str(refused.value)
    assert text.startswith(f"plugin.Wrong: {sentence}"), text
    assert f"; for example: {attribute} = " in text
    with pytest.raises(InvalidTool):
        run_tool(build(**{attribute: value}))


@pytest.mark.parametrize(
    ("attribute", "given", "converted"),
    [
        ("level", "read", Level.READ),
        ("modes", ["code"], frozenset({"code"})),
        ("capabilities", ("admin",), frozenset({"admin"})),
        ("timeout_s", "5", 5.0),
        ("open_world", 1, True),
        ("description", "half \ud83d a pair", "half \ufffd a pair"),
        ("rate_limit", {"calls": 3, "seconds": 60}, RateLimit(3, 60.0)),
    ],
)
def test_an_unambiguous_attribute_is_converted(attribute: str, given: Any, converted: Any) -> None:
    made = build(**{attribute: given})
    Toolbox().register(made)
    found = getattr(made, attribute)
    assert found == converted
    assert type(found) is type(converted)


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        (
            {"preview": None},
            "preview is None, not a method; for example: def preview(self, params, context)",
        ),
        ({"sentence": "Do it"}, "sentence is 'Do it', not a method"),
        ({"validate": _wait}, "validate must be a plain function"),
        (
            {"execute": lambda self, params: "done"},
            "execute takes other arguments; for example: def execute(self, ",
        ),
        ({"title": 5}, "title is 5."),
        ({"title": property(_fail)}, "title cannot be read: RuntimeError"),
        ({"level": property(_fail)}, "level cannot be read: RuntimeError"),
        ({"schema": {"type": {1}}}, "Params has no JSON schema"),
        ({"Params": Endless}, "Params has no JSON schema"),
        ({"Output": Anything}, "Output has no JSON schema"),
        ({"timeout_s": 1e300}, "timeout_s is 1e+300."),
        ({"name": f"test.{'x' * 120}"}, "name is 'test.xxx"),
    ],
)
def test_a_tool_with_an_invalid_member_is_left_out(members: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidTool) as refused:
        Toolbox().register(build(**members))
    assert str(refused.value).startswith(f"plugin.Wrong: {sentence}")
    assert "sk-123" not in str(refused.value)


def test_a_property_is_read_once() -> None:
    answers = iter(["read", "raed"])
    made = build(
        level=property(lambda _: next(answers)), title=property(lambda _: f"Title {len('x')}")
    )
    Toolbox().register(made)
    assert [made.level for _ in range(3)] == [Level.READ] * 3
    assert (type(made).__qualname__, made.title) == ("Wrong", "Title 1")


def test_a_registered_tool_cannot_become_invalid() -> None:
    made = build()
    made.timeout_s = "soon"  # type: ignore[assignment] # nobody relies on it yet
    made.timeout_s = 5.0
    toolbox = Toolbox()
    toolbox.register(made)
    with pytest.raises(InvalidTool, match="timeout_s is 'soon'"):
        made.timeout_s = "soon"  # type: ignore[assignment]
    made.level = "write"  # type: ignore[assignment]
    assert (made.timeout_s, made.level) == (5.0, Level.WRITE)
    toolbox.unregister("test.fine")
    with pytest.raises(InvalidTool, match="modes is 'code'"):
        toolbox.register(build(), modes="code")


def test_a_decorated_function_is_named_in_the_reason() -> None:
    @tool("test.say", level="loud")  # type: ignore[arg-type]
    def say(text: str) -> str:
        """Repeat the text."""
        return text

    with pytest.raises(InvalidTool, match=r"say: level is 'loud'"):
        Toolbox().register(say)


def test_versions_in_other_digits_can_be_sorted() -> None:
    toolbox = Toolbox()
    for version in ("1.0", "\u00b2", "\u0663"):
        toolbox.register(build(version=version))
    assert len(toolbox.tools()) == 3
