"""A tool's params: defaults are applied, unknown params refused, and errors reported as documented;
the canonical form never changes."""

from decimal import Decimal
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field

from tests.features import feature
from tests.tools.toolbox.sample_tools import Echo
from tools.contract import ErrorCode, Level, Tool, ToolContext, ToolError, ToolResult, format_error


class Nested(Tool):
    name = "sample.nested"
    description = "Takes nested params."
    level = Level.READ

    class Params(BaseModel):
        class Filter(BaseModel):
            title: str | None = None
            score: int | None = Field(None, ge=0, le=100, description="0 to 100")

        filter: Filter = Field(default_factory=Filter)
        amounts: list[float] = []
        price: Decimal | None = None
        attributes: dict[str, Any] = {}

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok()


class Exclaims(Tool):
    name = "sample.exclaims"
    description = "Reads its own params differently each time."

    class Params(BaseModel):
        text: Annotated[str, AfterValidator(lambda text: text + "!")]

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok()


class Aliased(Tool):
    name = "sample.aliased"
    description = "Shows the model another name than Python uses."

    class Params(BaseModel):
        site_search: str = Field("", alias="siteSearch")

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        return ToolResult.ok()


def refused(tool: Tool, raw: dict[str, Any]) -> ToolError:
    with pytest.raises(ToolError) as caught:
        tool.check_params(raw)
    return caught.value


def test_defaults_are_applied() -> None:
    assert Echo().check_params({"text": "hi"}) == {"text": "hi", "times": 1, "style": "plain"}


@feature(
    "Results and errors",
    "All errors have one format, without empty lines",
    "tools/contract/errors.py",
)
def test_a_missing_parameter_is_reported_in_the_documented_form() -> None:
    error = refused(Echo(), {})
    assert error.code is ErrorCode.MISSING_PARAM
    assert format_error(error) == (
        "TOOL ERROR: MISSING_PARAMETER\n"
        "The 'text' parameter is required.\n"
        "PARAMETER: text\n"
        "EXPECTED: What to say\n"
        'EXAMPLE: sample.echo(text: "hello")\n'
        "RECOVERY HINT: Provide 'text' and try again."
    )


def test_an_invalid_value_is_quoted() -> None:
    error = refused(Echo(), {"text": "hi", "times": 9})
    assert error.code is ErrorCode.INVALID_PARAMETER
    assert error.parameter == "times"
    assert "given: 9" in error.message


class Address(BaseModel):
    zip: str = Field(pattern="^[0-9]{5}$", description="Five digits", examples=["12345"])
    street: str = Field(description="Street and number")


class Sends(Echo):
    """A tool with a param of each nested type."""

    name = "sample.sends"

    class Params(BaseModel):
        to: Address = Field(description="The recipient", examples=[{"zip": "1"}])
        copies: list[Address] = Field([], description="Others")
        by_name: dict[str, Address] = Field({}, description="More")
        back: Address | int | None = Field(None, description="The sender")


@pytest.mark.parametrize(
    ("params", "parameter", "expected"),
    [
        ({"to": {"zip": "1", "street": "a"}}, "to.zip", "Five digits"),
        ({"to": {"zip": "12345"}}, "to.street", "Street and number"),
        ({"copies": [{"zip": "1", "street": "a"}]}, "copies.0.zip", "Five digits"),
        ({"by_name": {"ann": {"zip": "1", "street": "a"}}}, "by_name.ann.zip", "Five digits"),
        ({"back": {"zip": "1", "street": "a"}}, "back.zip", "Five digits"),
        ({"to": "here"}, "to", "The recipient"),
    ],
)
def test_a_nested_fault_names_the_innermost_field(
    params: dict[str, Any], parameter: str, expected: str
) -> None:
    right = {"to": {"zip": "12345", "street": "a"}}
    with pytest.raises(ToolError) as refused:
        Sends().check_params({**right, **params})
    error = refused.value
    assert (error.parameter, error.expected) == (parameter, expected)
    assert f"'{parameter}' parameter" in error.message
    if parameter.endswith("zip"):
        assert error.example == f'sample.sends({parameter}: "12345")'


def test_a_nested_fault_is_reported_with_its_path() -> None:
    assert refused(Nested(), {"filter": {"score": 101}}).parameter == "filter.score"


def test_an_unknown_parameter_is_refused_and_the_known_parameters_are_named() -> None:
    error = refused(Echo(), {"text": "hi", "volume": 11})
    assert (error.parameter, error.expected) == ("volume", "only: style, text, times")


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_unstorable_text_is_refused(text: str) -> None:
    assert refused(Echo(), {"text": text}).code is ErrorCode.INVALID_PARAMETER


@pytest.mark.parametrize("number", [float("inf"), float("nan"), "inf"])
def test_a_number_that_json_cannot_express_is_refused(number: object) -> None:
    assert (
        refused(Nested(), {"attributes": {"x": float("inf")}}).code is ErrorCode.INVALID_PARAMETER
    )
    assert refused(Nested(), {"amounts": [number]}).code is ErrorCode.INVALID_PARAMETER


def test_params_that_change_when_parsed_again_are_refused() -> None:
    with pytest.raises(ValueError, match="the executed params would differ from the approved ones"):
        Exclaims().check_params({"text": "hi"})


def test_a_params_name_in_the_schema_is_used_everywhere() -> None:
    tool = Aliased()
    params = tool.check_params({"siteSearch": "example.com"})
    assert params == {"siteSearch": "example.com"}
    assert tool.load_params(params).site_search == "example.com"
    assert list(tool.schema["properties"]) == ["siteSearch"]
    assert refused(tool, {"site_search": "x"}).parameter == "site_search"


VALUES = st.none() | st.booleans() | st.integers(-200, 200) | st.floats() | st.text(max_size=5)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "filter": st.dictionaries(
                st.sampled_from(["title", "score", "other"]), VALUES, max_size=2
            )
            | VALUES,
            "amounts": st.lists(VALUES, max_size=3),
            "price": VALUES,
            "attributes": st.dictionaries(
                st.text(max_size=3), VALUES | st.lists(VALUES, max_size=2), max_size=3
            ),
        },
    )
)
def test_checked_params_stay_the_same_when_checked_again(raw: dict[str, Any]) -> None:
    tool = Nested()
    try:
        checked = tool.check_params(raw)
    except ToolError:
        return
    assert tool.check_params(checked) == checked


@feature(
    "Tool contract",
    "Params are a pydantic model, which generates the schema for models",
    "tools/schemas/models.py",
)
def test_the_schema_has_no_titles_but_keeps_a_parameter_called_title() -> None:
    schema = Nested().schema
    assert "title" not in schema
    assert schema["$defs"]["Filter"]["properties"]["title"]["anyOf"][0] == {"type": "string"}


@feature(
    "Tool contract", "List of params with names, types and descriptions", "tools/contract/tool.py"
)
def test_the_list_form_describes_each_parameter() -> None:
    first = Echo().parameters[0]
    assert (first.name, first.type, first.description, first.required) == (
        "text",
        "string",
        "What to say",
        True,
    )
