"""Tools for international bank account numbers (IBAN)."""

import csv
from importlib.resources import files

from pydantic import BaseModel, Field

from tools.contract import ErrorCode, Level, Tool, ToolContext, ToolError, ToolResult, tool


@tool("iban.check", level=Level.READ, display_name="Check an IBAN")
def check_iban(number: str) -> ToolResult:
    """Verify the check digits of an IBAN, which finds nearly every typo.

    Args:
        number: The IBAN, with or without spaces.
    """
    compact = number.replace(" ", "").upper()
    if not (compact.isascii() and compact.isalnum() and 15 <= len(compact) <= 34):
        raise ToolError(
            ErrorCode.INVALID_PARAMETER, f"{number!r} is not an IBAN.", parameter="number"
        )
    digits = "".join(str(int(sign, 36)) for sign in compact[4:] + compact[:4])
    fits = int(digits) % 97 == 1
    return ToolResult.ok(
        {"number": compact, "fits": fits}, f"{compact} {'fits' if fits else 'is mistyped'}"
    )


class FindCountry(Tool):
    """Find the country of a bank account in a table that the package contains."""

    name = "iban.findCountry"
    display_name = "Find the country of an IBAN"
    description = "Say which country an IBAN belongs to, and how long that country's IBANs are."
    level = Level.READ

    class Params(BaseModel):
        """The params from the model."""

        number: str = Field(description="The IBAN, or its first two letters", min_length=2)

    def start(self) -> None:
        """Read the table once in each process."""
        table = files(__package__).joinpath("countries.csv").read_text(encoding="utf-8")
        self.countries = {row["code"]: row for row in csv.DictReader(table.splitlines())}

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        """Look up the country."""
        row = self.countries.get(params.number[:2].upper())
        if row is None:
            raise ToolError(
                ErrorCode.NOT_FOUND, f"No country in the table has {params.number[:2]!r}."
            )
        return ToolResult.ok(
            {"country": row["country"], "length": int(row["length"])}, row["country"]
        )


TOOLS = [check_iban, FindCountry]
