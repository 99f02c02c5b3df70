"""Paths into a tool's params: impossible paths, and params that every call has."""

from __future__ import annotations

from typing import Any

import pytest

from tools.schemas.param_paths import CallSchema, find_closed_object


def closed(*required: str, **properties: Any) -> dict[str, Any]:
    """Return the schema of an object without additional properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


TEXT = {"type": "string"}
ADDRESS = closed("street", street=TEXT, city=TEXT)
SCHEMA = {
    "type": "object",
    "$defs": {"Address": ADDRESS},
    "properties": {
        "name": TEXT,
        "address": {"$ref": "#/$defs/Address"},
        "home": {"anyOf": [{"$ref": "#/$defs/Address"}, {"type": "null"}]},
        "addresses": {"type": "array", "items": {"$ref": "#/$defs/Address"}},
        "more": {"type": "object", "properties": {"a": TEXT}},
        "by_pattern": {
            "type": "object",
            "patternProperties": {"^x": TEXT},
            "additionalProperties": False,
        },
        "either": {"anyOf": [ADDRESS, {"type": "object", "properties": {"zip": TEXT}}]},
        "any": {},
        "list": {"type": "array"},
    },
    "required": ["name"],
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("address.strret", ("address", ["city", "street"])),
        ("home.strret", ("home", ["city", "street"])),
        ("addresses.strret", ("addresses", ["city", "street"])),
        ("address.street.x", ("address.street", [])),
        ("name.first", ("name", [])),
        *(
            (path, None)
            for path in (
                *(
                    "name",
                    "address",
                    "address.street",
                    "home.city",
                    "addresses.city",
                    "more.b",
                    "by_pattern.xy",
                ),
                *("either.zip", "either.other", "any.thing", "list.thing"),
            )
        ),
    ],
)
def test_only_a_closed_object_makes_a_path_impossible(
    path: str, found: tuple[str, list[str]] | None
) -> None:
    assert find_closed_object(SCHEMA, path) == found


@pytest.mark.parametrize(
    ("schema", "paths", "missing"),
    [
        (closed("a", a=TEXT), [], "a"),
        (closed("a", a=TEXT), ["a"], ""),
        (closed(a=TEXT), [], ""),
        (closed("a", a={"type": ["string", "null"]}), [], ""),
        (closed("a", a={"anyOf": [TEXT, {"type": "null"}]}), [], ""),
        (closed("a", a={"enum": ["x", None]}), [], ""),
        (closed("a", a={"enum": ["x"]}), [], "a"),
        (closed("a", a={}), [], ""),
        (closed("address", address=ADDRESS), ["address.city"], "address.street"),
        (closed("address", address=ADDRESS), ["address.street"], ""),
        (closed(address=ADDRESS), ["address.city"], ""),
        (closed("all", all={"type": "array", "items": ADDRESS}), ["all.city"], "all.street"),
        (closed("all", all={"type": "array", "items": ADDRESS}), ["all"], ""),
        (closed(a={"type": "string", "default": "x"}), [], "a"),
        (closed(a={"type": "string", "default": None}), [], ""),
    ],
)
def test_a_missing_required_param_is_found(
    schema: dict[str, Any], paths: list[str], missing: str
) -> None:
    assert CallSchema(schema, has_defaults=True).find_missing(paths) == missing


def test_a_default_set_by_another_system_is_not_in_every_call() -> None:
    schema = closed(a={"type": "string", "default": "x"})
    assert not CallSchema(schema, has_defaults=False).find_missing([])


def test_params_are_listed_including_the_fields_of_closed_objects() -> None:
    listed = CallSchema(SCHEMA, has_defaults=True).list_params()
    assert [(param.path, param.is_always_there) for param in listed] == [
        ("name", True),
        ("address.street", False),
        ("address.city", False),
        ("home", False),
        ("addresses.street", False),
        ("addresses.city", False),
        *((name, False) for name in ("more", "by_pattern", "either", "any", "list")),
    ]


def test_a_recursive_schema_has_a_finite_list_of_params() -> None:
    reference = {"$ref": "#/$defs/Node"}
    schema = closed(child=reference) | {"$defs": {"Node": closed(child=reference, name=TEXT)}}
    paths = [param.path for param in CallSchema(schema, has_defaults=True).list_params()]
    assert "child.child.name" in paths
    assert len(paths) < 20


def test_a_param_behind_a_reference_has_the_type_of_its_target() -> None:
    maybe = {"anyOf": [{"$ref": "#/$defs/Name"}, {"type": "null"}]}
    schema = closed(name=maybe) | {"$defs": {"Name": TEXT}}
    (param,) = CallSchema(schema, has_defaults=True).list_params()
    assert param.type == "string or null"
