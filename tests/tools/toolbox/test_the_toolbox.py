"""The registry of tools: it holds several versions of a tool, refuses invalid tools, and starts and
shuts down every tool."""

import threading
from typing import Any

import pytest
from pydantic import BaseModel, Field

from tests.features import feature
from tests.tools.toolbox.sample_tools import Does, Echo
from tools.contract import ErrorCode, Level, ToolContext, ToolResult
from tools.office.tools import OFFICE_TOOLS
from tools.sources import fill_toolbox
from tools.sources.builtin import BuiltinSource
from tools.toolbox import Grants, Toolbox, format_menu

GRANTED = Grants(frozenset({"sample.echo", "sample.does", "other.echo"}))
CONTEXT = ToolContext(organization_id=1)


def filled(*tools: Echo | Does) -> Toolbox:
    toolbox = Toolbox()
    for tool in tools:
        toolbox.register(tool)
    return toolbox


@feature(
    "Tool contract",
    "Several versions of a tool coexist, and the name means the highest one",
    "tools/toolbox/toolbox.py",
)
def test_a_name_stands_for_the_tools_highest_version() -> None:
    old, new = Echo(version="1.9"), Echo(version="1.10")
    toolbox = filled(new, old)
    assert toolbox.get_tool("sample.echo") is new
    assert toolbox.get_tool("sample.echo@1.9") is old
    assert toolbox.get_tool("sample.echo@3.0") is None
    assert toolbox.tools() == [old, new]
    assert toolbox.available_tools(GRANTED) == [new]


def test_a_disabled_version_is_replaced_by_the_preceding_version() -> None:
    old, new = Echo(version="1.0"), Echo(version="2.0")
    toolbox = filled(old, new)
    toolbox.disable("sample.echo@2.0")
    assert toolbox.available_tools(GRANTED) == [old]
    toolbox.enable("sample.echo@2.0")
    assert toolbox.available_tools(GRANTED) == [new]
    toolbox.disable("sample.echo")
    assert toolbox.available_tools(GRANTED) == []
    assert toolbox.get_tool("sample.echo") is not None


@feature(
    "The toolbox and its settings",
    "Register, unregister and disable tools; a duplicate name and version is refused and names both",
    "tools/toolbox/toolbox.py",
)
def test_registering_a_name_and_version_twice_is_refused_and_names_both_tools() -> None:
    class Rival(Echo):
        pass

    with pytest.raises(ValueError, match=r"sample\.echo@1\.0 exists twice: .*Echo and .*Rival"):
        filled(Echo(), Rival())


@pytest.mark.parametrize("name", ["", "a b", "data.", ".x", "a@1", "data.search\n", "1a", "a..b"])
def test_a_name_may_contain_only_plain_characters(name: str) -> None:
    with pytest.raises(ValueError, match="must look like"):
        filled(Echo(name=name))


def test_a_tool_without_a_description_is_refused() -> None:
    with pytest.raises(ValueError, match="no description"):
        filled(Echo(description=" "))


@feature("Tool contract", "Only the run decides for whom a tool works", "tools/toolbox/toolbox.py")
@pytest.mark.parametrize(
    "parameter", ["organization_id", "organization", "orgId", "tenant", "user_id", "userId", "User"]
)
def test_a_tool_cannot_ask_the_model_for_the_organization_or_user(parameter: str) -> None:
    schema = {"properties": {"filter": {"properties": {parameter: {"type": "string"}}}}}
    with pytest.raises(ValueError, match="comes from the run"):
        filled(Echo(schema=schema))


def test_a_param_of_type_set_is_refused_because_it_has_no_stable_order() -> None:
    class Sets(BaseModel):
        tags: set[str] = Field(default_factory=set)

    with pytest.raises(ValueError, match="use a list"):
        filled(Echo(Params=Sets))


def test_modes_given_at_registration_replace_the_tools_own_modes() -> None:
    toolbox = Toolbox()
    toolbox.register(Echo(), modes=["code"])
    assert toolbox.get_mode_set("general") == []
    assert [tool.name for tool in toolbox.get_mode_set("code")] == ["sample.echo"]
    assert toolbox.available_tools(GRANTED) == []


@feature(
    "The toolbox and its settings",
    "Registration after the start, if the settings allow it",
    "tools/toolbox/toolbox.py",
)
def test_a_later_registration_is_possible_only_if_settings_allow_it() -> None:
    toolbox = Toolbox(allow_dynamic_registration=False)
    toolbox.start()
    with pytest.raises(RuntimeError, match="allow_dynamic_registration"):
        toolbox.register(Echo())


class Lively(Does):
    def __init__(self, log: list[str], **attributes: Any) -> None:
        super().__init__(lambda _: ToolResult.ok(), **attributes)
        self.log = log

    def start(self) -> None:
        self.log.append(f"start {self.name}")
        if self.name == "sample.broken":
            raise OSError

    def shutdown(self) -> None:
        self.log.append(f"stop {self.name}")
        if self.name == "sample.broken":
            raise SystemExit


@feature(
    "Tool contract",
    "Start and shutdown reach every tool, even if one fails",
    "tools/toolbox/toolbox.py",
)
def test_every_tool_is_started_and_shut_down_even_if_one_tool_fails() -> None:
    log: list[str] = []
    toolbox = filled(Lively(log, name="sample.broken"), Lively(log, name="sample.does"))
    toolbox.start()
    toolbox.register(Lively(log, name="sample.later"))
    toolbox.shutdown()
    reason = "sample.broken failed unexpectedly; the reason is in the log."
    assert toolbox.not_started == {"sample.broken@1.0": reason}
    assert log == [
        f"{act} sample.{name}" for act in ("start", "stop") for name in ("broken", "does", "later")
    ]
    assert toolbox.policy.disabled == {"sample.broken@1.0"}


def test_an_unregistered_tool_is_removed_and_shut_down() -> None:
    log: list[str] = []
    toolbox = filled(Lively(log))
    toolbox.unregister("sample.does")
    assert toolbox.get_tool("sample.does") is None
    assert log == ["stop sample.does"]
    with pytest.raises(KeyError, match=r"sample\.does"):
        toolbox.unregister("sample.does")


@feature(
    "The toolbox and its settings",
    "Menu of the allowed tools, by category, for the system prompt",
    "tools/toolbox/toolbox.py",
)
def test_the_menu_lists_usable_tools_by_category() -> None:
    toolbox = filled(
        Echo(),
        Does(lambda _: ""),
        Echo(name="other.echo", description="One.\nTwo."),
        Echo(name="secret.x"),
    )
    assert format_menu(toolbox.available_tools(GRANTED)) == (
        "other\n- other.echo (read): One.\n\n"
        "sample\n- sample.does (read): Does what the test says.\n- sample.echo (read): Says the same again."
    )
    assert format_menu(toolbox.available_tools(Grants())) == ""
    names = [definition["function"]["name"] for definition in toolbox.definitions(GRANTED)]
    assert names == ["other.echo", "sample.does", "sample.echo"]


@feature(
    "The toolbox and its settings",
    "A single call by name passes every check",
    "tools/toolbox/toolbox.py",
)
def test_a_call_by_name_is_checked_like_any_other_call() -> None:
    toolbox = filled(Echo(), Does(lambda _: ToolResult.ok(), level=Level.WRITE))
    assert toolbox.execute_tool_by_name("sample.echo", '{"text": "hi"}', CONTEXT, GRANTED).success
    refusals = {
        "sample.nothing": ErrorCode.TOOL_NOT_FOUND,
        "sample.does": ErrorCode.OPERATION_NOT_ALLOWED,
        "sample.echo": ErrorCode.MISSING_PARAM,
    }
    for name, code in refusals.items():
        error = toolbox.execute_tool_by_name(name, {}, CONTEXT, GRANTED).error
        assert error is not None
        assert error.code is code


def test_a_call_by_name_ends_at_the_timeout() -> None:
    released = threading.Event()
    tool = Does(lambda _: ToolResult.ok(released.wait(10)), timeout_s=0.02)
    error = filled(tool).execute_tool_by_name("sample.does", {}, CONTEXT, GRANTED).error
    released.set()
    assert error is not None
    assert error.code is ErrorCode.TIMEOUT


def test_the_shipped_tools_fit_into_a_toolbox() -> None:
    toolbox = Toolbox()
    source = BuiltinSource(OFFICE_TOOLS)
    fill_toolbox(toolbox, [source])
    assert {"utility.calculate", "utility.now"} <= {tool.name for tool in toolbox.tools()}
    assert source.tool("utility.now") is toolbox.get_tool("utility.now")


class TestAnExtendedToolbox:
    @staticmethod
    def extend(base: Toolbox, *tools: Echo) -> Toolbox:
        wider = base.with_hosts(frozenset({"api.example.com"}))
        fill_toolbox(wider, [BuiltinSource(tools, "connected")], by_precedence=True)
        return wider

    def test_adds_its_tools_without_changing_the_base(self) -> None:
        own, other = Echo(), Echo(name="other.echo")
        base = filled(own)
        wider = self.extend(base, other)
        assert wider.tools() == [other, own]
        assert base.tools() == [own]
        assert wider.policy.allowed_hosts == {"api.example.com"}
        assert base.policy.allowed_hosts == frozenset()

    @pytest.mark.parametrize(
        ("unfit", "reason"),
        [
            (
                Echo(version="9.0"),
                "sample.echo of 'connected' is left out: 'the installation' already provides it",
            ),
            (Echo(name="no name"), "the name 'no name' must look like 'category.toolName'"),
            (
                Echo(name="other.echo", description=""),
                "other.echo has no description for the model",
            ),
        ],
    )
    def test_leaves_out_unfit_and_duplicate_tools(self, unfit: Echo, reason: str) -> None:
        own, other = Echo(), Echo(name="third.echo")
        wider = self.extend(filled(own), unfit, other)
        assert wider.tools() == [own, other]
        (sentence,) = wider.left_out
        assert reason in sentence

    def test_has_the_same_tools_as_another_only_if_their_definitions_are_equal(self) -> None:
        base = filled(Echo())
        wider = self.extend(base, Echo(name="other.echo"))
        assert wider.has_same_tools(self.extend(base, Echo(name="other.echo")))
        assert not wider.has_same_tools(base)
        assert not wider.has_same_tools(
            self.extend(base, Echo(name="other.echo", level=Level.WRITE))
        )


def test_the_modes_of_a_toolbox_are_general_and_those_named_by_its_tools() -> None:
    toolbox = Toolbox()
    assert toolbox.modes == ["general"]
    for number, modes in enumerate((None, {"sales"}, {"code", "general"}, set[str]())):
        toolbox.register(
            Echo(name=f"sample.echo{number}", modes=None if modes is None else frozenset(modes))
        )
    assert toolbox.modes == ["general", "code", "sales"]
