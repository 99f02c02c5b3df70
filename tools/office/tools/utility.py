"""Tools in the `utility` category: exact arithmetic and the current time."""

import math
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from enum import StrEnum
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import BaseModel, Field

from tools.contract import ErrorCode, Level, Tool, ToolContext, ToolError, ToolResult
from tools.office.tools.outputs import CalculatedValue, CurrentTime

LARGEST = 1e30
LARGEST_WHOLE = Decimal(10) ** 60

Number = Annotated[int | float, Field(ge=-LARGEST, le=LARGEST)]


class ArithmeticOperation(StrEnum):
    """An operation on two numbers, with its symbol as `sign`."""

    ADD = "add"
    SUBTRACT = "subtract"
    MULTIPLY = "multiply"
    DIVIDE = "divide"

    @property
    def sign(self) -> str:
        return {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}[self.value]


class Calculate(Tool):
    name = "utility.calculate"
    display_name = "Calculate"
    description = "Add, subtract, multiply or divide two numbers exactly. Use it instead of calculating yourself."
    level = Level.READ
    Output = CalculatedValue
    idempotent = True

    class Params(BaseModel):
        operation: ArithmeticOperation = Field(
            description="add, subtract, multiply or divide", examples=["divide"]
        )
        a: Number = Field(description="The first number", examples=[84])
        b: Number = Field(description="The second number; for divide, the divisor", examples=[2])

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        value = _convert_to_number(
            _calculate(params.operation, Decimal(str(params.a)), Decimal(str(params.b)))
        )
        line = f"{params.a} {params.operation.sign} {params.b} = {value}"
        return ToolResult.ok({"value": value}, line)

    def running_summary(self, params: Params) -> str:
        return f"Calculating {params.a} {params.operation.sign} {params.b}…"


class Now(Tool):
    name = "utility.now"
    display_name = "Current time"
    description = "Get the current date and time, in the person's time zone or in a named one."
    level = Level.READ
    Output = CurrentTime
    volatile = True

    class Params(BaseModel):
        timezone: str = Field(
            "",
            description="IANA time zone, e.g. Europe/Berlin; empty for that of the person, else UTC",
            examples=["Europe/Berlin"],
        )

    def validate(self, params: Params) -> None:
        _load_zone(params.timezone or "UTC")

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        zone = params.timezone or context.user.preferences.get("time_zone", "UTC")
        now = datetime.now(UTC).astimezone(_load_zone(zone))
        data = {
            "iso": now.isoformat(timespec="seconds"),
            "date": now.date().isoformat(),
            "time": now.strftime("%H:%M:%S"),
            "weekday": now.strftime("%A"),
            "timezone": zone,
        }
        return ToolResult.ok(data, f"{data['weekday']}, {data['date']} {data['time']} ({zone})")


def _calculate(operation: ArithmeticOperation, a: Decimal, b: Decimal) -> Decimal:
    with localcontext(prec=80):
        match operation:
            case ArithmeticOperation.ADD:
                return a + b
            case ArithmeticOperation.SUBTRACT:
                return a - b
            case ArithmeticOperation.MULTIPLY:
                return a * b
            case ArithmeticOperation.DIVIDE if b:
                return a / b
    raise ToolError(
        ErrorCode.INVALID_OPERATION,
        f"{a} cannot be divided by zero.",
        parameter="b",
        expected="a divisor other than 0",
        recovery_hint="Check the source of the zero, or use another operation.",
    )


def _convert_to_number(value: Decimal) -> int | float:
    """Convert a whole value up to LARGEST_WHOLE to int, and any other value to the nearest float.

    Raises:
        ToolError: LIMIT_EXCEEDED, the value is too large for a float.
    """
    if abs(value) <= LARGEST_WHOLE and value == value.to_integral_value():
        return int(value)
    nearest = float(value)
    if math.isfinite(nearest):
        return nearest
    raise ToolError(ErrorCode.LIMIT_EXCEEDED, "The result is too large to be shown as a number.")


def _load_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ToolError(
            ErrorCode.INVALID_PARAMETER,
            f"There is no time zone {name!r}.",
            parameter="timezone",
            expected="an IANA name such as UTC, Europe/Berlin or America/New_York",
            recovery_hint="Correct 'timezone' and try again.",
            attempted=False,
        ) from error
