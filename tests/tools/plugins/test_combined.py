"""Several sources as one: they keep their order, their tools have unique names, and all of them are
shut down."""

from __future__ import annotations

import pytest

from tests.features import feature
from tools.contract import Level, Tool, ToolContext, ToolResult
from tools.sources import CombinedSource, ToolSource, fill_toolbox
from tools.sources.builtin import BuiltinSource
from tools.toolbox import Toolbox


def made(name: str, version: str = "1.0", description: str = "Say hello.") -> Tool:
    """Return a tool with this name."""

    class Hello(Tool):
        level = Level.READ

        def execute(self, params: object, context: ToolContext) -> ToolResult:
            return ToolResult.ok()

    tool = Hello()
    tool.name, tool.version, tool.description = name, version, description
    return tool


class Noted(BuiltinSource):
    """A source that records calls of its methods in `diary`, and fails in the method that
    `fails_to` names."""

    def __init__(self, name: str, *tools: Tool, diary: list[str], fails_to: str = "") -> None:
        super().__init__(tools, name)
        self.diary = diary
        self.fails_to = fails_to

    def start(self) -> None:
        self._note("start")
        super().start()

    def shutdown(self) -> None:
        self._note("shutdown")
        super().shutdown()

    def _note(self, what: str) -> None:
        self.diary.append(f"{what} {self.name}")
        if self.fails_to == what:
            raise OSError(f"{self.name} cannot {what}")


def ids(source: ToolSource) -> list[str]:
    return [tool.id for tool in source.tools()]


def test_tools_are_listed_in_the_order_of_their_sources() -> None:
    source = CombinedSource(
        [
            BuiltinSource([made("mail.send"), made("mail.send", "2.0")]),
            BuiltinSource([made("crm.find")]),
        ]
    )
    assert source.tools() == []
    source.start()
    assert ids(source) == ["mail.send@1.0", "mail.send@2.0", "crm.find@1.0"]
    found = source.tool("crm.find")
    assert found is not None
    assert found.id == "crm.find@1.0"
    assert source.tool("crm.delete") is None


@feature(
    "Plugins",
    "Several sources act as one, and equal names are an error",
    "tools/sources/combined.py",
)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_the_same_name_in_two_sources_is_refused_whatever_the_versions(version: str) -> None:
    source = CombinedSource(
        [
            BuiltinSource([made("mail.send")], "first"),
            BuiltinSource([made("mail.send", version)], "second"),
        ]
    )
    with pytest.raises(
        ValueError, match=r"mail\.send comes from both 'first' and 'second': remove one"
    ):
        source.start()
    assert source.tools() == []


def test_a_combined_source_can_be_part_of_another() -> None:
    inner = CombinedSource([BuiltinSource([made("mail.send")])])
    outer = CombinedSource([inner, BuiltinSource([made("mail.find")], "beside")])
    outer.start()
    assert ids(outer) == ["mail.send@1.0", "mail.find@1.0"]
    with pytest.raises(ValueError, match="from both 'combined' and 'beside'"):
        CombinedSource([inner, BuiltinSource([made("mail.send")], "beside")]).start()


def test_a_combined_source_starts_once_and_shuts_down_all_parts_in_reverse_order() -> None:
    diary: list[str] = []
    sources = [Noted(name, made(f"{name}.hello"), diary=diary) for name in ("a", "b", "c")]
    source = CombinedSource(sources)
    source.start()
    source.start()
    assert diary == ["start a", "start b", "start c"]
    source.shutdown()
    source.shutdown()
    assert diary[3:] == ["shutdown c", "shutdown b", "shutdown a"]
    assert source.tools() == []
    source.start()
    assert ids(source) == ["a.hello@1.0", "b.hello@1.0", "c.hello@1.0"]


@feature("Plugins", "Shutdown reaches every source, even if one fails", "tools/sources/combined.py")
def test_a_source_that_cannot_shut_down_does_not_affect_other_sources() -> None:
    diary: list[str] = []
    sources = [
        Noted(name, made(f"{name}.hello"), diary=diary, fails_to="shutdown" if name == "b" else "")
        for name in "abc"
    ]
    source = CombinedSource(sources)
    source.start()
    with pytest.raises(OSError, match="b cannot shutdown"):
        source.shutdown()
    assert diary[3:] == ["shutdown c", "shutdown b", "shutdown a"]
    assert source.tools() == []


def test_all_sources_are_shut_down_if_one_of_them_cannot_start() -> None:
    diary: list[str] = []
    sources = [
        Noted(name, made(f"{name}.hello"), diary=diary, fails_to="start" if name == "b" else "")
        for name in "abc"
    ]
    source = CombinedSource(sources)
    with pytest.raises(OSError, match="b cannot start"):
        source.start()
    assert diary == ["start a", "start b", "shutdown b", "shutdown a"]
    assert source.tools() == []


def test_a_toolbox_cannot_have_tools_of_the_same_name_from_two_sources() -> None:
    toolbox = Toolbox()
    fill_toolbox(
        toolbox,
        [
            BuiltinSource([made("mail.send"), made("mail.send", "2.0")]),
            BuiltinSource([made("crm.find")]),
        ],
    )
    assert [tool.id for tool in toolbox.tools()] == [
        "crm.find@1.0",
        "mail.send@1.0",
        "mail.send@2.0",
    ]
    with pytest.raises(ValueError, match=r"mail\.send comes from both 'ours' and 'theirs'"):
        fill_toolbox(
            Toolbox(),
            [
                BuiltinSource([made("mail.send")], "ours"),
                BuiltinSource([made("mail.send", "9.0")], "theirs"),
            ],
        )


def test_a_tool_named_like_one_that_the_toolbox_withholds_is_left_out() -> None:
    installed = Toolbox()
    installed.leave_out([], {"mail.send": "mail.send is closed today."})
    toolbox = installed.with_hosts(frozenset())
    theirs = BuiltinSource([made("mail.send"), made("mail.find")], "theirs")
    fill_toolbox(toolbox, [theirs], by_precedence=True)
    assert [tool.id for tool in toolbox.tools()] == ["mail.find@1.0"]
    assert toolbox.policy.withheld == {"mail.send": "mail.send is closed today."}
    assert toolbox.left_out == (
        "mail.send of 'theirs' is left out: 'the installation' already provides it",
    )


def test_only_the_invalid_tool_of_a_source_is_left_out() -> None:
    toolbox, wrong = Toolbox(), made("mail.send")
    wrong.timeout_s = "soon"  # type: ignore[assignment]
    fill_toolbox(toolbox, [BuiltinSource([wrong, made("crm.find")])])
    assert [tool.id for tool in toolbox.tools()] == ["crm.find@1.0"]
    (problem,) = toolbox.left_out
    assert "Hello: timeout_s is 'soon'" in problem
