"""Values that mean more than they seem to: they select everything, empty a field, are credentials,
or differ from another value of the same name. Each has an honest twin without a mark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agents.approvals.warnings.meanings import find_meanings
from tests.features import feature

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJq4"
RANDOM = "k3J9xQ2mZ8vB4nL7pR1tW6"


def read(
    params: dict[str, Any],
    *targets: dict[str, Any],
    schema: dict[str, Any] | None = None,
    is_from_outside: bool = True,
) -> list[tuple[str, str]]:
    tool: Any = SimpleNamespace(schema=schema or {}, is_from_outside=is_from_outside)
    return [(each.kind, each.detail) for each in find_meanings(params, targets, tool)]


def list_kinds(params: dict[str, Any], *targets: dict[str, Any], **more: Any) -> list[str]:
    return [kind for kind, _ in read(params, *targets, **more)]


@feature(
    "The gate",
    "A value that stands for all, empties something or is a credential is marked",
    "agents/approvals/warnings/meanings.py",
)
@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"ids": "*"}, [("unlimited", "in “ids”: “*”")]),
        ({"ids": ["41", "*"]}, [("unlimited", "in “ids”: “*”")]),
        ({"rules": [{"path": "reports/**/*"}]}, [("unlimited", "in “rules.path”: “reports/**/*”")]),
        ({"token": "laptop", "expires": None}, [("unlimited", "in “expires”: no end")]),
        ({"order": {"amount": None}}, [("emptied", "in “order.amount”: null")]),
        ({"betrag": None}, [("emptied", "in “betrag”: null")]),
        ({"approvers": ["Ann", None, None]}, [("emptied", "in “approvers”: 2 of 3")]),
        ({"password": "hunter2hunter2"}, [("credential", "“password”")]),
        ({"users": [{"密码": "abc"}]}, [("credential", "“users.密码”")]),
        ({"note": f"Add {KEY} please"}, [("credential", "“note”")]),
        (
            {"amount": 10, "order": {"amount": 90000}},
            [("twice", "in “amount”: “10”; in “order.amount”: “90000”")],
        ),
        (
            {"dry_run": True, "dry-run": False},
            [("twice", "in “dry_run”: “yes”; in “dry-run”: “no”")],
        ),
        ({"password": "one2345", "Password": "two2345"}, [("twice", "“password”; “Password”")]),
    ],
)
def test_a_meaning_is_found_in_the_params(
    params: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    assert [each for each in read(params) if each[0] == found[0][0]] == found


@pytest.mark.parametrize(
    "params",
    [
        {"ids": ["41"], "glob": "src/**/*.py", "grade": "A*", "version": "1.*"},
        {"unit": "%", "bullet": "*", "note": "50%", "text": "2 * 3 = *", "mask": "****"},
        {"folder": "all", "cron": "* * * * *"},
        {"expires": "2026-12-24", "owner": None, "cc": [], "limits": {}, "title": ""},
        {"amount": 0, "rows": [["Ann", None], [None, "Bob"]], "series": [1, None, 3]},
        {"token": "laptop", "key": "PROJ-123", "page_token": RANDOM, "sha": RANDOM},
        {"password": "****", "password_policy": "strong", "reset_password": True, "pin": "Board"},
        {"amount": 10, "order": {"amount": "10"}, "lines": [{"amount": 4}, {"amount": 6}]},
        {"name": "Order 5", "customer": {"name": "Ann"}, "fee": {"amount": 2}, "amount": 9},
        {"from": {"email": "a@acme.com"}, "billing": {"email": "b@acme.com"}},
        {"start": {"at": 1}, "end": {"at": 2}, "+1": 3, "-1": 4, "_id": 5, "id": 6},
        {"a": {"to": "x"}, "b": {"to": "y"}, "v1.0": 1, "v10": 2, "I": 1, "i": 2},
    ],
)
def test_ordinary_params_have_no_meaning(params: dict[str, Any]) -> None:
    assert read(params) == []


class TestTargets:
    SIDES: dict[str, Any] = {"before": {"phone": "1", "domain": "a.com", "email": ""}}

    def test_with_emptied_values_are_named(self) -> None:
        target = self.SIDES | {"after": {"phone": "", "domain": " ", "email": "b@acme.com"}}
        assert read({}, target) == [("emptied", "“phone”"), ("emptied", "“domain”")]
        assert read({}, target, target)[0] == ("emptied", "“phone” of 2")

    @pytest.mark.parametrize(
        "target",
        [
            SIDES | {"after": {"phone": "2", "domain": "b.com", "email": ""}},
            SIDES | {"after": {"email": "b@acme.com"}},
            SIDES | {"after": {}},
            {"before": {}, "after": {"phone": "", "email": None}},
        ],
    )
    def test_with_filled_created_or_deleted_values_are_not_named(
        self, target: dict[str, Any]
    ) -> None:
        assert read({}, target) == []

    def test_have_meanings_of_their_own_and_make_nulls_in_the_params_irrelevant(self) -> None:
        target = {"before": {"role": "a"}, "after": {"role": "*"}}
        assert read({"amount": None}, target) == [("unlimited", "in “role”: “*”")]
        assert not find_meanings({}, [target], None)[0].is_fixed({"role"})


class TestASchema:
    SCHEMA: dict[str, Any] = {
        "properties": {
            "state": {"enum": ["open", "closed", "all"]},
            "code": {"type": "string", "format": "password"},
            "hint": {"type": "string", "writeOnly": True},
            "amount": {"type": "number", "default": None},
            "order": {"properties": {"amount": {"type": "number"}}},
        }
    }

    def test_identifies_a_value_that_selects_everything_and_a_credential(self) -> None:
        params = {"state": "all", "code": "blue", "hint": "red"}
        assert list_kinds(params, schema=self.SCHEMA) == ["unlimited", "credential", "credential"]
        assert list_kinds(params) == []
        assert list_kinds({"state": "open", "code": ""}, schema=self.SCHEMA) == []

    def test_that_has_two_params_of_one_name_allows_them_to_differ(self) -> None:
        params = {"amount": 10, "order": {"amount": 90}}
        assert list_kinds(params, schema=self.SCHEMA) == []
        assert list_kinds({**params, "options": {"amount": 5}}, schema=self.SCHEMA) == ["twice"]

    def test_of_our_own_tool_allows_a_null_that_is_its_default(self) -> None:
        params = {"amount": None}
        assert list_kinds(params, schema=self.SCHEMA, is_from_outside=False) == []
        assert list_kinds(params, schema=self.SCHEMA) == ["emptied"]


def test_deep_and_large_params_are_read_quickly() -> None:
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"a": deep, "to": "x"}
    assert read(deep) == []
    for word in ("a.", "sk-", "eyJ-", "{", "a:", "://"):
        assert read({"password_hint": word * 7_000}) == []
    assert read({f"p{n}": [{"to": n}] * 50 for n in range(200)}) == []
