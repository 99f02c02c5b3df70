"""The decorator `@tool`: the parts of a typed function that it reads, and the behavior of the
resulting tool."""

import asyncio
from typing import Annotated, Literal

import pytest
from pydantic import Field

from tests.features import feature
from tools.contract import ErrorCode, Level, NoParams, ToolContext, ToolError, ToolResult, tool
from tools.sources.builtin import BuiltinSource
from tools.testing import run_tool


@tool("weather.forecast", level=Level.READ, timeout_s=3.0)
def forecast(
    city: str,
    context: ToolContext,
    days: Annotated[int, Field(ge=1, le=7)] = 3,
    unit: Annotated[Literal["C", "F"], Field(description="Its own words.")] = "C",
) -> ToolResult:
    """Forecast the weather of a city.

    Knows Europe only.

    Args:
        city: Name of the city,
            in English.
        days (int): How many days: from today on.
        unit: Not these.

    Returns:
        city: nothing that a model is told.
    """
    if city == "Atlantis":
        raise ToolError(ErrorCode.NOT_FOUND, "There is no city 'Atlantis'.", parameter="city")
    return ToolResult.ok(
        {"city": city, "days": days, "unit": unit, "for": context.organization_id}, "Sunny"
    )


@tool(level=Level.DRAFT)
async def say_hello() -> str:
    """Greet."""
    return "Hello\nWorld"


def test_the_docstring_describes_the_tool_and_its_params() -> None:
    assert forecast.description == "Forecast the weather of a city.\n\nKnows Europe only."
    assert {one.name: one.description for one in forecast.parameters} == {
        "city": "Name of the city, in English.",
        "days": "How many days: from today on.",
        "unit": "Its own words.",
    }


@feature("Tool contract", "A typed function becomes a tool", "tools/contract/function.py")
def test_hints_and_defaults_define_the_schema() -> None:
    assert forecast.schema["required"] == ["city"]
    properties = forecast.schema["properties"]
    assert properties["days"] | {"description": ""} == {
        "type": "integer", "minimum": 1, "maximum": 7, "default": 3, "description": ""
    }  # fmt: skip
    assert properties["unit"]["enum"] == ["C", "F"]
    assert forecast.definition["function"]["name"] == "weather.forecast"
    assert (forecast.level, forecast.timeout_s) == (Level.READ, 3.0)


def test_the_function_receives_the_context_and_the_defaults() -> None:
    result = run_tool(forecast, {"city": "Rome"}, organization_id=7)
    assert result.data == {"city": "Rome", "days": 3, "unit": "C", "for": 7}


def test_params_are_checked_and_errors_reported() -> None:
    for params, code in (
        ({}, "MISSING_PARAM"),
        ({"city": "Rome", "days": 9}, "INVALID_PARAMETER"),
        ({"city": "Rome", "context": {}}, "INVALID_PARAMETER"),
        ({"city": "Atlantis"}, "NOT_FOUND"),
    ):
        error = run_tool(forecast, params).error
        assert error is not None
        assert error.code == code


def test_a_text_becomes_a_result_and_the_function_stays_callable() -> None:
    result = run_tool(say_hello)
    assert (result.summary, result.markdown) == ("Hello", "Hello\nWorld")
    assert asyncio.run(say_hello()) == "Hello\nWorld"
    assert (say_hello.is_async, forecast.is_async) == (True, False)
    assert say_hello.name == "test_tools_from_functions.sayHello"


def test_a_missing_level_means_destructive() -> None:
    @tool("sample.bare")
    def bare() -> str:
        """A function without a level."""
        return "done"

    assert bare.level is Level.DESTRUCTIVE
    assert bare.Params.model_fields == NoParams.model_fields


def test_an_unfillable_signature_is_refused_when_the_tool_is_created() -> None:
    def untyped(city: str) -> str:
        return city

    del untyped.__annotations__["city"]

    def many(*cities: str) -> str:
        return " ".join(cities)

    for function, why in ((untyped, "'city' needs a type"), (many, "cannot be passed by name")):
        with pytest.raises(TypeError, match=why):
            tool("sample.refused")(function)
    with pytest.raises(TypeError, match="no attribute 'color'"):
        tool("sample.refused", color="red")(many)


def test_a_source_accepts_a_tool_made_from_a_function() -> None:
    source = BuiltinSource([forecast])
    source.start()
    assert source.tool("weather.forecast") is forecast
