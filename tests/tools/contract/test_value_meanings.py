"""Wildcards and credentials are found by their shape, or by words in the names of params."""

from __future__ import annotations

from typing import Any

import pytest

from tools.contract.credential_values import is_credential
from tools.contract.param_words import fold_name
from tools.contract.wide_values import stands_for_all

RANDOM = "k3J9xQ2mZ8vB4nL7pR1tW6"
UUID = "123e4567-e89b-12d3-a456-426614174000"


@pytest.mark.parametrize(
    "text",
    [
        *("*", " ** ", "*.*", "*/*", "/*", "./**", "reports/*", "reports/**/*", "s3:*", "\uff0a"),
        *("arn:aws:s3:::*", "users.*", "https://acme.com/*", "%", "%%", "%2A", '"*"'),
        *(".*", "^.*$", ".+", "(.*)", ".*?", r"[\s\S]*", r"\S*|.*", "(?i).*", "^(a|)"),
        *("0.0.0.0/0", "::/0"),
    ],
)
def test_text_that_means_all_is_found(text: str) -> None:
    assert stands_for_all(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "***", "****", "A*", "C++", "5*", "1.*", "^1.*", "v1.2.*", "*.md", "*bold*"),
        *("src/**/*.py", "*.example.com", "* item", "2 * 3", "* * * * *", "50%", "% done"),
        *("^a$", "a.*b", ".*invoice.*", "(a|b)", "[a-z]+", "Hello?", "...", "^_^", "f(x)*", "{a}?"),
        *("198.51.100.7/32", "10.0.0.0/8", "1/0", "and/0", "all", "reports/a.md", "*" * 100),
    ],
)
def test_text_that_does_not_mean_all_is_not_found(text: str) -> None:
    assert not stands_for_all(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            (name, "blue sky")
            for name in ("password", "newPassword", "password_confirm", "PASSWORD")
        ),
        *((name, "abc") for name in ("Benutzerpasswort", "contraseña_nueva", "mot_de_passe")),
        *((name, "abc") for name in ("новый_пароль", "新しいパスワード", "비밀번호", "hasło")),
        *(("pin", 1234), ("otp", "123456"), ("api_key", "prod8key1"), ("token", RANDOM)),
        ("client_secret", "hunter2hunter2"),
        ("note", "use ghp_abcdefghijklmnop1234567890"),
        ("key", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJq4"),
        ("url", "postgres://ann:blue@db.acme.com/x"),
        ("text", "-----BEGIN RSA PRIVATE KEY-----\nabc"),
        ("header", "Bearer abcdefghij123456789"),
    ],
)
def test_a_credential_is_found(name: str, value: Any) -> None:
    assert is_credential(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("token", "laptop"), ("token", UUID), ("max_tokens", 4000), ("page_token", RANDOM)),
        *(("password", ""), ("password", None), ("password", "****"), ("password", "{{ x }}")),
        *(("password_policy", "strong"), ("passwordless", "x"), ("reset_password", True)),
        *(("key", "PROJ-123"), ("idempotency_key", RANDOM), ("monkey", RANDOM), ("id", RANDOM)),
        *(("pin", "Board"), ("pin", True), ("secret", "prod/db"), ("исключение", RANDOM)),
        ("password_reset_url", "https://acme.com/reset"),
        ("password", "https://acme.com/reset"),
        ("price", "price_1MoBy5LkdIwHu7ixZhnattbh"),
        ("note", "Our tokens begin with sk- or ghp_."),
        *(("locale", "sk-something-in-slovak"), ("env", "npm_config_registry_url")),
        ("text", "Bearer of bad news and more"),
    ],
)
def test_an_ordinary_value_is_not_a_credential(name: str, value: Any) -> None:
    assert not is_credential(name, value)


@pytest.mark.parametrize("names", [("dry-run", "Dry_Run", "dryRun", "dry run "), ("to", "t\u043e")])
def test_spellings_of_one_name_are_equal(names: tuple[str, ...]) -> None:
    assert len(set(map(fold_name, names))) == 1


@pytest.mark.parametrize("names", [("+1", "-1"), ("_id", "id"), ("v1.0", "v10"), ("cc", "bcc")])
def test_different_names_are_not_equal(names: tuple[str, ...]) -> None:
    assert len(set(map(fold_name, names))) == len(names)
