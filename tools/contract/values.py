"""Types in declarations, previews and results, checked by pydantic and safely converted."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from tools.contract.canonical import make_storable
from tools.contract.plain_json import write_plain_json, write_text

CHECKED_AGAIN = ConfigDict(revalidate_instances="always")
"""Makes pydantic check the dataclass instances that tools build, because Python does not check the
types of their fields."""


def _refuse_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("Input should be a number, not True or False")  # noqa: TRY004 - pydantic expects this class
    return value


Text = Annotated[str, AfterValidator(make_storable)]
"""A text, converted so that every database can store it; values of other types are refused."""
ModeName = Annotated[Text, Field(min_length=1, max_length=40)]
WrittenText = Annotated[str, BeforeValidator(write_text)]
"""A text, or a number, date, UUID or the like converted to text; None becomes an empty text."""
Number = Annotated[float, BeforeValidator(_refuse_boolean), Field(allow_inf_nan=False)]
Count = Annotated[int, BeforeValidator(_refuse_boolean)]
PlainObject = Annotated[
    dict[str, Any], BeforeValidator(lambda value: {} if value is None else write_plain_json(value))
]
"""A JSON object; None becomes an empty object."""
StoredObject = Annotated[dict[str, Any], AfterValidator(write_plain_json)]
"""An object, converted to plain JSON."""
