"""Wildcards and credentials are found by their shape, or by words in the names of params."""

from __future__ import annotations

from typing import Any

import pytest

from tools.contract.credential_values import is_credential
from tools.contract.param_words import fold_name
from tools.contract.wide_values import is_endless, matches_all, stands_for_all

RANDOM = "k3J9xQ2mZ8vB4nL7pR1tW6"
UUID = "123e4567-e89b-12d3-a456-426614174000"


@pytest.mark.parametrize(
    "text",
    [
        *("*", " ** ", "*.*", "*/*", "/*", "./**", "reports/*", "reports/**/*", "s3:*", "\uff0a"),
        *("arn:aws:s3:::*", "users.*", "https://acme.com/*", "%", "%%", "%2A", '"*"'),
        *(".*", "^.*$", ".+", "(.*)", ".*?", r"[\s\S]*", r"\S*|.*", "(?i).*", "^(a|)"),
        *("0.0.0.0/0", "::/0", "0.0.0.0/00", "0.0.0.0/0.0.0.0", "128.0.0.0/1", "2000::/3"),
        *("0.0.0.0-255.255.255.255", "0.0.0.0 / 0", "::ffff:0:0/96", "0-65535", "1-65535"),
        *("*://*/*", "*@*", "?*", "*%", "*/", "[*]", "ann@acme.com,*", "a; *"),
        "bob@acme.com, " * 40 + "*",
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
        *("0/1", "0/0", "0 / 1", "0.0/1", "(*)", "Thanks, :*", "def f(a, *, b): pass"),
        "en-US,en;q=0.5,*;q=0.1",
        *("12:00/0", "10.0.0.0/2", "10.0.0.1-10.0.0.9", "8000-9000", "020-7946-0018", "2024-03-15"),
        *(
            "***@***",
            "Units: kg, m, %",
            "text/html,*/*;q=0.8",
            "***, good",
            "a, *b*",
            "0 9 * * 1,2",
        ),
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
        *(("password", text) for text in ("P@ssw0rd", "Summer@2024", "/abc123!x", "{Xy9!k2}")),
        *(("password", text) for text in ("[Xy9!k2]", "<Xy9!k2>", 12345678901)),
        *(("env", text) for text in ("DB_PASSWORD=hunter2!X", "A=b\nexport API_KEY='prod8key1'")),
        ("argument", "--password=hunter2!X"),
        *(("x", text) for text in ("Basic dXNlcjpwYXNz", "basic dXNlcjpwYXNzMQ==")),
        ("body", "x " * 10_001 + "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
        *(("x", text) for text in ("glpat-a8Fj-3kD_93kfXm2Qp7Z", "sk-proj-Ab3dEf6hIj9kLm2n")),
        ("token", "kJhgfDSAqwertyUIOPzxcv99"),
        ("token", "abcd1234-efgh5678-ijkl9012-mnop3456"),
        ("license_key", "ABCD1-EFGH2-IJKL3-MNOP4-QRST5"),
        ("access_token", "qzxwvkjhgfdspoiuytre9876"),
        ("authorization", "Bearer abcdefghijklmnop1234"),
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
        *(("password", text) for text in ("ann@acme.com", "/run/secrets/db", "./pw.txt", 12)),
        *(("password", text) for text in ("<your-password>", "${DB_PASS}", "$DB_PASS", "[hidden]")),
        *(("key", text) for text in ("invoices/2024/q3/acme-gmbh.pdf", "ui.mail.notification.v2")),
        *(("key", text) for text in (f"users/{UUID}/avatar.png", "db-20240315T120000Z.sql.gz")),
        *(("x", text) for text in ("hf_2024_quarterly_report", "sk-SK_2024-03-15-report")),
        *(
            ("x", text)
            for text in ("the Basic 12-month-subscription plan", "Bearer of-news-2024-05")
        ),
        *(("env", text) for text in ("REQUIRE_PASSWORD=true", "show_password=false")),
        *(("env", text) for text in ("DB_HOST=x\nDB_PASSWORD=$db_password", "password=?")),
        *(("password", text) for text in ('<%= ENV["DB_PASSWORD"] %>', "<secret:db/password-1>")),
        *(("password", text) for text in (":password", "%s", "%(password)s", "true")),
        *(
            ("key", text)
            for text in ("settings.notifications.email.v2", "sprint12-team3-board45-a1")
        ),
        *(("x", text) for text in ("password=see vault", "PASSWORD=$DB_PASS", "color=blue8key1")),
    ],
)
def test_an_ordinary_value_is_not_a_credential(name: str, value: Any) -> None:
    assert not is_credential(name, value)


@pytest.mark.parametrize(
    "pattern", ["acme|", "^", ".", "(?=.*)", "(?=.+).*", ".*|" + "x" * 80, r"[\s\S]"]
)
def test_a_pattern_that_finds_something_in_any_text_is_found(pattern: str) -> None:
    assert matches_all(pattern)


@pytest.mark.parametrize(
    "pattern", ["", "^a$", r"invoice-\d+", "yyyy-MM-dd", r"(?=.*\d)(?=.*[A-Z]).{8,}", "*.md", "("]
)
def test_a_pattern_that_leaves_texts_out_is_not_found(pattern: str) -> None:
    assert not matches_all(pattern)


def test_a_number_without_an_end_is_found_in_any_spelling() -> None:
    endless: tuple[str | float, ...] = ("Infinity", "-inf", "∞", "1e999", "NaN", float("inf"))
    ordinary: tuple[str | float, ...] = ("", "100", "1e9", 10**400, "none", "∞ kg 5", "9" * 20_000)
    assert all(is_endless(value) for value in endless)
    assert not any(is_endless(value) for value in ordinary)


@pytest.mark.parametrize("names", [("dry-run", "Dry_Run", "dryRun", "dry run "), ("to", "t\u043e")])
def test_spellings_of_one_name_are_equal(names: tuple[str, ...]) -> None:
    assert len(set(map(fold_name, names))) == 1


@pytest.mark.parametrize("names", [("+1", "-1"), ("_id", "id"), ("v1.0", "v10"), ("cc", "bcc")])
def test_different_names_are_not_equal(names: tuple[str, ...]) -> None:
    assert len(set(map(fold_name, names))) == len(names)
