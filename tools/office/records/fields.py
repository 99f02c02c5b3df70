"""Fields of a record as pydantic types, shared by tools, imports and the API."""

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from tools.contract import canonical_json
from tools.contract.sentences import format_value
from tools.schemas.references import leave_out_null, list_choices

MAX_ATTRIBUTES = 50
LONGEST_ATTRIBUTES = 10_000
EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+")
DOMAIN = re.compile(r"[\w-]+(\.[\w-]+)+")


def _refuse_null(text: str) -> str:
    if "\x00" in text:
        raise ValueError("it contains a null character")
    return text


def _collapse_to_line(text: str) -> str:
    return " ".join(_refuse_null(text).split())


def _refuse_blank(text: str) -> str:
    if not text:
        raise ValueError("it is empty")
    return text


def _clean_email(text: str) -> str:
    if text and not EMAIL.fullmatch(text):
        raise ValueError("it is not an email address")
    return text


def _clean_domain(text: str) -> str:
    if text and not DOMAIN.fullmatch(text):
        raise ValueError("it is not a bare domain such as example.com")
    return text.lower()


def _check_attributes(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if len(value) > MAX_ATTRIBUTES:
        raise ValueError(f"there are {len(value)} attributes; at most {MAX_ATTRIBUTES} are allowed")
    written = canonical_json(value)
    if len(written) > LONGEST_ATTRIBUTES:
        raise ValueError(
            f"they take {len(written)} characters as JSON; at most {LONGEST_ATTRIBUTES} are allowed"
        )
    if "\\u0000" in written:
        raise ValueError("they contain a null character")
    if any(not 0 < len(key) <= 60 or key != _collapse_to_line(key) for key in value):
        raise ValueError("a key must be one line of 1 to 60 characters")
    return value


def convert_to_text(value: Any) -> Any:
    """Convert a whole number to text, because many models send one as an id; return other values
    unchanged."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _normalize_id(text: str) -> str:
    return str(int(text))


def _drop_repeats(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))


RecordId = Annotated[
    str,
    BeforeValidator(convert_to_text),
    Field(pattern=r"^[0-9]{1,18}$", examples=["42"]),
    AfterValidator(_normalize_id),
]
RecordIds = Annotated[list[RecordId], AfterValidator(_drop_repeats)]
Name = Annotated[
    str, Field(max_length=200), AfterValidator(_collapse_to_line), AfterValidator(_refuse_blank)
]
ListName = Annotated[
    str, Field(max_length=100), AfterValidator(_collapse_to_line), AfterValidator(_refuse_blank)
]
Region = Annotated[str, Field(max_length=50), AfterValidator(_collapse_to_line)]
Category = Annotated[str, Field(max_length=80), AfterValidator(_collapse_to_line)]
Email = Annotated[
    str, Field(max_length=254), AfterValidator(_collapse_to_line), AfterValidator(_clean_email)
]
Domain = Annotated[
    str, Field(max_length=253), AfterValidator(_collapse_to_line), AfterValidator(_clean_domain)
]
Phone = Annotated[str, Field(max_length=40), AfterValidator(_collapse_to_line)]
Notes = Annotated[str, Field(max_length=5_000), AfterValidator(_refuse_null)]
Reason = Annotated[
    str, Field(max_length=500), AfterValidator(_collapse_to_line), AfterValidator(_refuse_blank)
]
Query = Annotated[str, Field(max_length=200), AfterValidator(_collapse_to_line)]
Body = Annotated[str, Field(min_length=1, max_length=100_000), AfterValidator(_refuse_null)]
Score = Annotated[int, Field(ge=0, le=100)]
Attributes = Annotated[dict[str, JsonValue], AfterValidator(_check_attributes)]
StatusName = Literal["active", "inactive", "pending"]
QualificationName = Literal["qualified", "disqualified"]


def _drop_nulls(schema: dict[str, Any]) -> None:
    for name, part in schema.get("properties", {}).items():
        choices = leave_out_null(list_choices(part))
        if len(choices) == 1 and part.get("default", "") is None:
            rest = {key: value for key, value in part.items() if key not in ("anyOf", "default")}
            schema["properties"][name] = {**choices[0], **rest}


class Sparse(BaseModel):
    """A model whose JSON omits unset fields, which are None, so that a card shows only the given
    values.

    To keep the schema short, fields are optional and not nullable; a null counts as not given.
    """

    model_config = ConfigDict(extra="forbid", json_schema_extra=_drop_nulls)

    @model_serializer(mode="wrap")
    def _leave_out_unset(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in dump(self).items() if value is not None}


class RecordFields(Sparse):
    """Fields of a new record; only the name is required."""

    name: Name = Field(description="Name of the company or person")
    region: Region | None = Field(None, description="Region code, e.g. EU")
    category: Category | None = Field(None, description="Line of business, e.g. Logistics")
    status: StatusName = Field("active", description="active, inactive or pending")
    score: Score | None = Field(None, description="Score from 0 to 100")
    email: Email | None = Field(None, description="Email address")
    domain: Domain | None = Field(
        None, description="Internet domain without https://, e.g. example.com"
    )
    phone: Phone | None = Field(None, description="Telephone number")
    notes: Notes | None = Field(None, description="Free text")
    attributes: Attributes | None = Field(
        None, description="Additional facts as key-value pairs, e.g. employees: 120"
    )


class SharedChanges(Sparse):
    """Changes that make sense for many records at once; omitted fields stay unchanged."""

    region: Region | None = Field(None, description="New region code")
    category: Category | None = Field(None, description="New category")
    status: StatusName | None = Field(None, description="New status: active, inactive or pending")
    score: Score | None = Field(None, description="New score from 0 to 100")


class RecordChanges(SharedChanges):
    """Changes to one record; omitted fields stay unchanged, and an empty text clears a field."""

    name: Name | None = Field(None, description="New name")
    email: Email | None = Field(None, description="New email address")
    domain: Domain | None = Field(None, description="New domain, e.g. example.com")
    phone: Phone | None = Field(None, description="New telephone number")
    notes: Notes | None = Field(None, description="New notes; they replace the old ones")
    attributes: Attributes | None = Field(
        None, description="Attributes to set; others stay unchanged, and null removes one"
    )
    archived: Literal[False] | None = Field(None, description="false restores an archived record")


class RecordFilters(Sparse):
    """Conditions that select records; all of them must hold."""

    region: Region | None = Field(None, description="Region code, e.g. EU")
    category: Category | None = Field(None, description="Category, e.g. Logistics")
    status: StatusName | None = Field(None, description="active, inactive or pending")
    qualification: QualificationName | None = Field(None, description="qualified or disqualified")
    text: Query | None = Field(
        None, description="Words that must all appear in name, email, domain, notes or category"
    )
    min_score: Score | None = Field(None, description="Lowest score")
    max_score: Score | None = Field(None, description="Highest score")

    def get_conditions(self) -> dict[str, Any]:
        """Return the conditions that are set, by name."""
        return {
            key: value
            for key in RecordFilters.model_fields
            if (value := getattr(self, key)) not in (None, "")
        }

    def describe(self) -> str:
        """Describe the conditions, e.g. "region EU, score at least 10"; empty if none is set."""
        words = {"min_score": "score at least", "max_score": "score at most"}
        return ", ".join(
            f"{words.get(key, key)} {format_value(value)}"
            for key, value in self.get_conditions().items()
        )


class Selection(Sparse):
    """A selection of records, by ids or by filters."""

    record_ids: RecordIds | None = Field(
        None, max_length=1000, description="Ids of the records; or give filters"
    )
    filters: RecordFilters | None = Field(
        None, description="Conditions that choose the records; or give record_ids"
    )
