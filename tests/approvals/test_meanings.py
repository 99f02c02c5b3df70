"""Values that mean more than they seem to: they select everything, empty a field, are credentials,
or differ from another value of the same name. Each has an honest twin without a mark."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from agents.approvals.warnings.meanings import FixedParams, find_meanings
from tests.features import feature

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJq4"
SPELLINGS = (
    "amount",
    "Amount",
    "AMOUNT",
    "aMount",
    "amOunt",
    "amoUnt",
    "amouNt",
    "AMount",
    "AmOunt",
)
CREDENTIAL_IN_P = ("credential", "“p.ParameterValue”")
LONG_JSON = json.dumps({"u": "x" * 60, "v": "hunter-two-" + "y" * 50})
RANDOM = "k3J9xQ2mZ8vB4nL7pR1tW6"


def read(
    params: dict[str, Any],
    *targets: dict[str, Any],
    schema: dict[str, Any] | None = None,
    is_from_outside: bool = True,
) -> list[tuple[str, str]]:
    tool: Any = SimpleNamespace(schema=schema or {}, is_from_outside=is_from_outside)
    return [(each.kind, each.detail) for each in find_meanings(params, targets, tool)]


def fix(*whole: str, limited: tuple[str, ...] = (), listed: tuple[str, ...] = ()) -> FixedParams:
    names = frozenset(whole)
    return FixedParams(names, names, names.union(limited), frozenset(listed))


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
        (
            {"policy": '{"Statement": [{"Action": "*", "Effect": "Allow"}]}'},
            [("unlimited", "in “policy.Statement.Action”: “*”")],
        ),
        (
            {"body": '{"amount": 5, "amount": 500}'},
            [("twice", "in “body.amount”: “5”; in “body.amount”: “500”")],
        ),
        ({"body": '{"a": 1}\n{"password": "hunter2!X"}'}, [("credential", "“body.password”")]),
        ({"body": "[" * 100_000}, [("unlimited", "in “body”: further values are not checked")]),
        ({"permissions": {"*": "admin"}}, [("unlimited", "in “permissions”: “*”")]),
        ({"allow": {"0.0.0.0/0": True}}, [("unlimited", "in “allow”: “0.0.0.0/0”")]),
        ({"ids": [*map(str, range(9_000))], "scope": "*"}, [("unlimited", "in “scope”: “*”")]),
        ({"ids": [0] * 90_000, "password": "hunter2!X"}, [("credential", "“password”")]),
        (
            {"ids": [*map(str, range(50_000))]},
            [("unlimited", "in “ids”: further values are not checked")],
        ),
        (
            {f"p{n}": n for n in range(30_000)},
            [("unlimited", "in “p12000”: further values are not checked")],
        ),
        (
            {**dict.fromkeys(SPELLINGS, 5), "amounT": 500},
            [("twice", "in “amount”: “5”; in “amounT”: “500”")],
        ),
        (
            {"fields": [{"name": "password", "value": "hunter2!X"}]},
            [("credential", "“fields.value”")],
        ),
        ({"p": [{"ParameterKey": "DbPassword", "ParameterValue": "x"}]}, [CREDENTIAL_IN_P]),
        (
            {"amount": 5, "fields": [{"name": "amount", "value": 500}]},
            [("twice", "in “amount”: “5”; in “fields.value”: “500”")],
        ),
        ({"password": LONG_JSON}, [("credential", "“password”")]),
        ({"a": '{"x\\ud800":"*"}'}, [("unlimited", "in “a.x\ufffd”: “*”")]),
        ({"list_price": "null"}, [("emptied", "in “list_price”: “null”")]),
        ({"cidr": "0/0"}, [("unlimited", "in “cidr”: “0/0”")]),
        (
            {"body": '{"dry": 1, "dry": 0}'},
            [("twice", "in “body.dry”: “1”; in “body.dry”: “0”")],
        ),
        (
            {"body": '{"amount": 1, "Amount": 2}'},
            [("twice", "in “body.amount”: “1”; in “body.Amount”: “2”")],
        ),
        ({"auth": {"user": "bob", "pass": "hunter2!X"}}, [("credential", "“auth.pass”")]),
        ({"file_mask": "*"}, [("unlimited", "in “file_mask”: “*”")]),
        ({"pattern": "acme|"}, [("unlimited", "in “pattern”: “acme|”")]),
        ({"limit": "Infinity"}, [("unlimited", "in “limit”: “Infinity”")]),
        ({"amount": "1e999"}, [("unlimited", "in “amount”: “1e999”")]),
        ({"expires_at": ""}, [("unlimited", "in “expires_at”: no end")]),
        ({"amount": " "}, [("emptied", "in “amount”: empty")]),
        ({"amount": "null"}, [("emptied", "in “amount”: “null”")]),
        (
            {"amount": 5, "data[amount]": 500},
            [("twice", "in “amount”: “5”; in “data[amount]”: “500”")],
        ),
        (
            {"data.amount": 500, "data": {"amount": 5}},
            [("twice", "in “data.amount”: “500”; in “data.amount”: “5”")],
        ),
        ({"amount": 5, "amount[]": 500}, [("twice", "in “amount”: “5”; in “amount[]”: “500”")]),
        (
            {"items": [{"id": 1}], "Items": [{"id": 2}, {"id": 3}]},
            [("twice", "in “items”: “1 entry”; in “Items”: “2 entries”")],
        ),
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
        {"body": '{"name": "Ann", "amount": 5}', "amount": 5, "schema": '{"type": "object"}'},
        {"ids": [*map(str, range(9_000))], "contacts": [{"city": "Rome", "age": 5}] * 9_000},
        {"lines": [{"name": "Coffee", "value": 3}, {"name": "Coffee", "value": 4}]},
        {"lines": [{"name": "Shipping fee", "value": 3}, {"name": "Shipping fee", "value": 4}]},
        {"where": [{"key": "amount", "op": ">", "value": 1}, {"key": "amount", "value": 9}]},
        {"where": [{"key": "tag", "value": "a"}, {"key": "tag", "value": "b"}]},
        {"amount": 100, "tax": {"amount": 19}, "price": 20, "shipping": {"price": 5}},
        {"discountType": "%", "discount": {"%": 5}, "results": {"pass": 12, "fail": 1}},
        {"pattern": "^a$", "limit": 100, "max_name": "none", "fee": "none", "title": "null"},
        {"cost_center": "", "price_list": "None", "priceList": ""},
        {"tsconfig": '{"paths": {"@/*": ["src/x"]}}'},
        {"event": '{"login": "ann", "pass": "2 of 3"}', "x": {"user": "ann", "pw": "no"}},
        {"body": '{"The": 12, "the": 40}', "ready": "0/1"},
        {"body": '{"price": 20, "previous": {"price": 25}}'},
        {"total": 120, "page.total": 3, "role": "user", "owner.role": "admin"},
        {"fields": [{"name": "price", "value": 10}, {"name": "price", "value": 20}]},
        {"items[0]": 1, "items[1]": 2, "1.5": "a", "1/5": "b", "/old": "c", "/old/": "d"},
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
        assert not find_meanings({}, [target], None)[0].is_fixed(fix("role"))


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

    def test_of_our_own_tool_allows_an_empty_text_that_is_its_default(self) -> None:
        schema = {"properties": {"expires": {"type": "string", "default": ""}}}
        assert list_kinds({"expires": ""}, schema=schema, is_from_outside=False) == []
        assert list_kinds({"expires": ""}, schema=schema) == ["unlimited"]

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
    for word in ("a@", "*,", "A=b\n", "Basic aaaa ", "(?=", "<a", "/a"):
        assert list_kinds({"hint": word * 10_000, "pattern": word * 900}) in ([], ["unlimited"] * 2)


FIELDS = {"fields": [{"key": "price", "value": None}]}
PAIR = {"price": 5, "fields": [{"key": "price", "value": 9}]}
TWO = {"body": '{"amount": 10, "Amount": 99}'}
DEEP = {"body": "[" * 100_000}


@pytest.mark.parametrize(
    ("params", "fixed"),
    [
        (FIELDS, fix("fields.value", "fields.key")),
        (PAIR, fix("fields", "price")),
        (TWO, fix("body")),
        ({"order": {"amount": 1, "Amount": 2}}, fix(limited=("order.amount", "order.Amount"))),
        ({"body": '{"amount": 5, "amount": 500}'}, fix("body")),
        ({"permissions": {"*": "read"}}, fix(listed=("permissions.*",))),
        ({"permissions": {"*": {"a": "read"}}}, fix(listed=("permissions.*.a",))),
        (DEEP, fix("body")),
    ],
)
def test_a_meaning_is_settled_by_conditions_that_choose_it(
    params: dict[str, Any], fixed: FixedParams
) -> None:
    found = find_meanings(params, [], None)
    assert found
    assert all(each.is_fixed(fixed) for each in found)


@pytest.mark.parametrize(
    ("params", "fixed"),
    [
        (FIELDS, fix("fields.value")),
        (PAIR, fix(limited=("fields.value", "price"))),
        (TWO, fix(limited=("body",))),
        ({"order": {"amount": 1, "Amount": 2}}, fix(limited=("order",))),
        ({"body": '{"amount": 5, "amount": 500}'}, fix("body.amount", limited=("body",))),
        ({"permissions": '{"*": "read"}'}, fix(listed=("permissions", "permissions.*"))),
        (DEEP | {"more": "[" * 100_000}, fix("body")),
    ],
)
def test_a_meaning_is_not_settled_by_conditions_that_leave_it_open(
    params: dict[str, Any], fixed: FixedParams
) -> None:
    found = find_meanings(params, [], None)
    assert found
    assert not any(each.is_fixed(fixed) for each in found)
