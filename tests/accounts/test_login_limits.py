"""The limits on logins: guessing passwords from one address is slow, and guesses elsewhere never
lock people out of a browser that they have used before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.db import connection, connections
from django.test import Client
from pytest_django import Settings

from agents.accounts.logins import hashing, limits
from agents.accounts.logins.hashing import ThreadLimit, TooBusy
from agents.accounts.logins.known_browsers import build_cookie_name
from agents.accounts.logins.limits import (
    MAX_FOR_ACCOUNT,
    MAX_FROM_ADDRESS,
    MAX_FROM_KNOWN_BROWSER,
    WINDOW,
)
from tests.web.test_users import create_reset_link, invite, open_link
from tests.world import World, make_world, nobody

PASSWORD = "correct-horse-battery"
HOME, STRANGER = "203.0.113.7", "198.51.100.9"
OK, WRONG, LOCKED = 302, 200, 429


@pytest.fixture
def world(db: None, settings: Settings) -> World:
    return world_with_passwords(settings)


def world_with_passwords(settings: Settings) -> World:
    """Create people who can log in, and activate the limits."""
    settings.AXES_ENABLED = True
    made = make_world()
    for user in made.users.values():
        user.set_password(PASSWORD)
        user.save()
    return made


def log_in(
    username: str, password: str = PASSWORD, address: str = HOME, client: Client | None = None
) -> Any:
    sent = {"username": username, "password": password}
    return (client or nobody()).post("/login/", sent, REMOTE_ADDR=address)


def guess(
    username: str, times: int = 1, address: str = STRANGER, client: Client | None = None
) -> list[int]:
    return [log_in(username, "wrong", address, client).status_code for _ in range(times)]


def let_pass(time: timedelta) -> None:
    """Move all counted attempts this far into the past."""
    for row in AccessAttempt.objects.all():
        AccessAttempt.objects.filter(pk=row.pk).update(attempt_time=row.attempt_time - time)


class TestPerAccountAndAddress:
    def test_the_right_password_is_refused_after_too_many_wrong_passwords(
        self, world: World
    ) -> None:
        assert guess("viewer", MAX_FOR_ACCOUNT, HOME) == [WRONG] * MAX_FOR_ACCOUNT
        response = log_in("viewer")
        assert response.status_code == LOCKED
        assert "Try again in 15 minutes" in response.content.decode()
        assert 800 < int(response["Retry-After"]) <= 901
        assert log_in("operator").status_code == OK

    def test_a_login_one_guess_before_the_limit_resets_the_count(self, world: World) -> None:
        for _ in range(2):
            guess("viewer", MAX_FOR_ACCOUNT - 1, HOME)
            assert log_in("viewer").status_code == OK

    def test_guesses_from_another_address_do_not_lock_out_the_user(self, world: World) -> None:
        guess("viewer", MAX_FOR_ACCOUNT + 1, STRANGER)
        assert log_in("viewer", address=HOME).status_code == OK

    def test_the_lock_ends_15_minutes_after_the_first_guess_even_if_guessing_continues(
        self, world: World
    ) -> None:
        guess("viewer", MAX_FOR_ACCOUNT, HOME)
        let_pass(WINDOW - timedelta(seconds=20))
        assert guess("viewer", 3, HOME) == [LOCKED] * 3
        let_pass(timedelta(seconds=20))
        assert log_in("viewer").status_code == OK

    def test_the_admin_sites_login_page_shares_the_limit(self, world: World) -> None:
        for _ in range(MAX_FOR_ACCOUNT):
            nobody().post(
                "/admin/login/", {"username": "admin", "password": "wrong"}, REMOTE_ADDR=HOME
            )
        assert log_in("admin").status_code == LOCKED
        sent = {"username": "admin", "password": PASSWORD}
        assert nobody().post("/admin/login/", sent, REMOTE_ADDR=HOME).status_code == LOCKED


class TestPerAddress:
    def test_guesses_for_many_names_from_one_address_are_limited(self, world: World) -> None:
        responses = [guess(f"name{number}")[0] for number in range(25)]
        assert responses == [WRONG] * MAX_FROM_ADDRESS + [LOCKED] * (25 - MAX_FROM_ADDRESS)
        assert log_in("viewer", address=STRANGER).status_code == LOCKED
        assert log_in("viewer", address=HOME).status_code == OK

    def test_logging_in_with_the_right_password_does_not_reset_the_limit(
        self, world: World
    ) -> None:
        for number in range(MAX_FROM_ADDRESS - 1):
            guess(f"name{number}")
            assert log_in("outsider", address=STRANGER).status_code == OK
        assert guess("another") == [WRONG]
        assert guess("another") == [LOCKED]

    def test_all_addresses_of_an_ipv6_network_share_one_limit(self, world: World) -> None:
        responses = [
            guess(f"name{number}", address=f"2001:db8:7::{number + 1:x}")[0] for number in range(21)
        ]
        assert responses == [WRONG] * 20 + [LOCKED]
        assert guess("name", address="2001:db8:7:1::1") == [WRONG]

    def test_ipv4_clients_of_an_ipv6_listener_do_not_share_one_limit(self, world: World) -> None:
        responses = [guess(f"name{number}", address="::ffff:192.0.2.1")[0] for number in range(21)]
        assert responses == [WRONG] * 20 + [LOCKED]
        assert guess("name", address="::ffff:192.0.2.2") == [WRONG]

    def test_a_refused_attempt_with_a_new_name_is_not_stored(self, world: World) -> None:
        for number in range(30):
            guess(f"name{number}")
        assert AccessAttempt.objects.count() == MAX_FROM_ADDRESS + 1

    def test_expired_attempts_are_deleted(self, world: World) -> None:
        guess("viewer")
        let_pass(WINDOW)
        guess("operator", address=HOME)
        assert set(AccessAttempt.objects.values_list("ip_address", flat=True)) == {HOME}


class TestKnownBrowser:
    def test_a_locked_out_person_can_log_in_from_a_browser_they_used_before(
        self, world: World
    ) -> None:
        known = nobody()
        assert log_in("viewer", address=STRANGER, client=known).status_code == OK
        known.post("/logout/")
        guess("viewer", MAX_FOR_ACCOUNT)
        for number in range(MAX_FROM_ADDRESS):
            guess(f"name{number}")
        assert log_in("viewer", address=STRANGER).status_code == LOCKED
        assert log_in("viewer", address=STRANGER, client=known).status_code == OK

    def test_a_known_browsers_cookie_does_not_unlock_another_account(self, world: World) -> None:
        known = nobody()
        log_in("viewer", address=STRANGER, client=known)
        known.post("/logout/")
        guess("operator", MAX_FOR_ACCOUNT)
        assert log_in("operator", address=STRANGER, client=known).status_code == LOCKED
        known.cookies[build_cookie_name("operator")] = known.cookies[
            build_cookie_name("viewer")
        ].value
        assert log_in("operator", address=STRANGER, client=known).status_code == LOCKED

    def test_guesses_in_a_known_browser_share_one_limit_across_addresses(
        self, world: World
    ) -> None:
        known = nobody()
        log_in("viewer", client=known)
        known.post("/logout/")
        responses = [guess("viewer", 1, f"192.0.2.{number}", known)[0] for number in range(10)]
        assert responses == [WRONG] * MAX_FROM_KNOWN_BROWSER + [LOCKED] * 2
        assert log_in("viewer", address=HOME).status_code == OK

    def test_a_forged_cookie_does_not_bypass_the_lock(self, world: World) -> None:
        guess("viewer", MAX_FOR_ACCOUNT)
        client = nobody()
        client.cookies[build_cookie_name("viewer")] = '["viewer","mark"]'
        assert log_in("viewer", address=STRANGER, client=client).status_code == LOCKED

    def test_the_cookie_is_hidden_from_scripts_and_does_not_name_its_user(
        self, world: World, settings: Settings
    ) -> None:
        settings.SESSION_COOKIE_SECURE = True
        client = nobody()
        log_in("viewer", client=client)
        cookie = client.cookies[build_cookie_name("viewer")]
        assert (cookie["httponly"], cookie["secure"], cookie["samesite"]) == (True, True, "Lax")
        assert "viewer" not in cookie.key


@pytest.mark.django_db(transaction=True)
def test_simultaneous_guesses_do_not_exceed_the_limit(settings: Settings) -> None:
    world_with_passwords(settings)

    def one_guess(_: int) -> int:
        try:
            return guess("viewer")[0]
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as threads:
        responses = list(threads.map(one_guess, range(30)))
    assert responses.count(WRONG) == MAX_FOR_ACCOUNT


@pytest.mark.django_db(transaction=True)
def test_a_password_is_never_hashed_inside_a_transaction(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hashing may wait for a slot. In a transaction, that would block all other writers on
    SQLite."""
    world = world_with_passwords(settings)
    links = invite(world), create_reset_link(world, "operator")
    real_hashing(settings)
    viewer = world.client("viewer")
    limit = Counted()
    monkeypatch.setattr(hashing, "LIMIT", limit)
    new = {"password": PASSWORD, "again": PASSWORD}
    assert open_link(links[0]).post("/join/", {"username": "ada", **new}).status_code == OK
    assert open_link(links[1]).post("/new-password/", new).status_code == OK
    own = {
        "old_password": PASSWORD,
        "new_password1": PASSWORD + "!",
        "new_password2": PASSWORD + "!",
    }
    assert viewer.post("/account/password/", own).status_code == OK
    assert limit.taken >= 3
    assert not limit.was_in_transaction


@pytest.mark.django_db(transaction=True)
def test_the_database_connection_is_released_while_a_password_is_hashed() -> None:
    connection.ensure_connection()
    hashing.BoundedPasswordHasher().encode(PASSWORD, "salt", iterations=1)
    assert connection.connection is None


class TestCostOfPasswords:
    def test_hashing_is_refused_once_enough_other_hashings_run_and_wait(self) -> None:
        limit, leave = ThreadLimit(most_at_once=1, most_waiting=1, max_wait_s=10), Event()
        inside = [Event(), Event()]

        def stay(number: int) -> None:
            with limit.holding_slot():
                inside[number].set()
                assert leave.wait(10)

        with ThreadPoolExecutor(2) as threads:
            first = threads.submit(stay, 0)
            assert inside[0].wait(10)
            second = threads.submit(stay, 1)
            while limit._inside_or_waiting._value:
                assert not second.done()
            with pytest.raises(TooBusy), limit.holding_slot():
                pass
            assert not inside[1].is_set()
            leave.set()
            first.result(10)
            second.result(10)

    def test_waiting_for_a_slot_ends_after_the_time_limit(self) -> None:
        limit = ThreadLimit(most_at_once=1, most_waiting=1, max_wait_s=0.01)
        with limit.holding_slot(), pytest.raises(TooBusy), limit.holding_slot():
            pass
        with limit.holding_slot():
            pass

    def test_a_login_without_a_free_slot_says_when_to_retry_and_is_not_counted_as_an_attempt(
        self, world: World, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real_hashing(settings)
        limit = ThreadLimit(most_at_once=1, most_waiting=0, max_wait_s=0.01)
        monkeypatch.setattr(hashing, "LIMIT", limit)
        with limit.holding_slot():
            for path in ("/login/", "/admin/login/"):
                response = nobody().post(
                    path, {"username": "somebody", "password": "x"}, REMOTE_ADDR=HOME
                )
                assert (response.status_code, response["Retry-After"]) == (429, "5")
                assert "Try again in a few seconds" in response.content.decode()
        assert not AccessAttempt.objects.filter(failures_since_start__gt=0).exists()

    def test_a_flood_of_strangers_does_not_block_a_known_browser(
        self, world: World, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real_hashing(settings)
        world.users["viewer"].set_password(PASSWORD)
        world.users["viewer"].save()
        known = nobody()
        log_in("viewer", client=known)
        known.post("/logout/")
        limit = ThreadLimit(most_at_once=1, most_waiting=0, max_wait_s=0.01)
        monkeypatch.setattr(hashing, "LIMIT", limit)
        with limit.holding_slot():
            assert log_in("viewer", client=known).status_code == OK
            assert log_in("viewer").status_code == 429

    def test_a_login_with_the_real_hasher_succeeds_and_a_wrong_password_fails(
        self, world: World, settings: Settings
    ) -> None:
        real_hashing(settings)
        user = User.objects.get(username="viewer")
        user.set_password(PASSWORD)
        user.save()
        assert user.password.startswith("pbkdf2_sha256$")
        assert log_in("viewer", "wrong").status_code == WRONG
        assert log_in("viewer").status_code == OK

    @pytest.mark.parametrize("username", ["viewer", "nobody-of-this-name", "switched-off"])
    def test_every_login_hashes_one_password_so_that_timing_does_not_reveal_accounts(
        self, world: World, settings: Settings, username: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real_hashing(settings)
        off = User.objects.create_user("switched-off", password=PASSWORD)
        User.objects.filter(pk=off.pk).update(is_active=False)
        User.objects.filter(username="viewer").update(password=off.password)
        limit = Counted()
        monkeypatch.setattr(hashing, "LIMIT", limit)
        assert log_in(username, "wrong").status_code == WRONG
        assert limit.taken == 1


class Counted(ThreadLimit):
    """A limit that counts the slots taken, and records whether one was taken in a transaction."""

    def __init__(self) -> None:
        super().__init__(1, 1, 1)
        self.taken = 0
        self.was_in_transaction = False

    def holding_slot(self) -> Any:
        self.taken += 1
        self.was_in_transaction |= connection.in_atomic_block
        return super().holding_slot()


def real_hashing(settings: Settings) -> None:
    """Use the product's hasher for new passwords instead of the tests' quick one, whose hashes are
    still accepted."""
    settings.PASSWORD_HASHERS = [
        f"{hashing.__name__}.BoundedPasswordHasher",
        *settings.PASSWORD_HASHERS,
    ]


def test_the_limits_in_15_minutes_are_8_per_account_20_per_address_and_8_per_known_browser() -> (
    None
):
    assert (MAX_FOR_ACCOUNT, MAX_FROM_ADDRESS, MAX_FROM_KNOWN_BROWSER) == (8, 20, 8)
    assert timedelta(minutes=15) == limits.WINDOW
