"""A socket opens for a member of the run's organisation from a page of ours, and closes when that ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models.functions import Now
from websockets.exceptions import InvalidStatus

from agents.membership import issue_token
from agents.models import ApiToken, Membership, Run
from tests.engine.workshop import asking, build_workshop, call
from tests.journeys.office import Office, numbers_of, run_of
from tests.journeys.outside import Outside, Socket, numbered, opened

NO_LOGIN = 4401
NOT_THERE = 4404
TOO_LONG = 1009
PATHS = ("/ws/runs/{run}/", "/ws/inbox/")


@pytest.fixture
def run(office: Office) -> Run:
    """A run that waits for a decision."""
    record = office.workshop.record()
    office.workshop.play(asking(call("data.updateRecord", record_id=str(record.pk), changes={"score": 1})))
    run = office.submit()
    office.await_cards(run.pk)
    return run_of(run.pk)


def of_browser(office: Office, member: Membership | None = None, origin: str = "") -> dict[str, str]:
    """The headers of a page of ours, or of another origin; with the session of this person, if there is one."""
    cookie = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={office.session(member)}"} if member else {}
    return {"Origin": origin or office.url, **cookie}


@contextmanager
def watching(office: Office, run: Run, headers: dict[str, str]) -> Iterator[Socket]:
    with opened(office.url, f"/ws/runs/{run.pk}/", headers) as socket:
        yield socket


def refused(office: Office, path: str, headers: dict[str, str]) -> int:
    """The HTTP status with which a handshake is refused; 0 if it is not."""
    try:
        with opened(office.url, path, headers):
            return 0
    except InvalidStatus as answer:
        return answer.response.status_code


def close_code(office: Office, path: str, headers: dict[str, str]) -> int | None:
    with opened(office.url, path, headers) as socket:
        return socket.close_code()


@pytest.mark.parametrize("path", PATHS)
class TestNobody:
    def test_a_page_without_login_is_told_so_and_closed(self, office: Office, run: Run, path: str) -> None:
        assert close_code(office, path.format(run=run.pk), of_browser(office)) == NO_LOGIN

    def test_a_wrong_token_is_nobody_even_beside_a_good_session(self, office: Office, run: Run, path: str) -> None:
        wrong = {"Authorization": "Bearer gadget_wrong"}
        assert close_code(office, path.format(run=run.pk), wrong) == NO_LOGIN
        both = {**of_browser(office, office.member("admin")), **wrong}
        assert close_code(office, path.format(run=run.pk), both) == NO_LOGIN

    def test_a_login_without_an_organisation_is_nobody(self, office: Office, run: Run, path: str) -> None:
        member = office.member("viewer")
        headers = of_browser(office, member)
        member.delete()
        assert close_code(office, path.format(run=run.pk), headers) == NO_LOGIN

    @pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost"])
    def test_a_page_of_another_origin_gets_no_handshake(self, office: Office, run: Run, path: str, origin: str) -> None:
        headers = of_browser(office, office.member("admin"), origin)
        assert refused(office, path.format(run=run.pk), headers) == 403

    def test_a_cookie_without_an_origin_gets_no_handshake(self, office: Office, run: Run, path: str) -> None:
        headers = of_browser(office, office.member("admin"))
        del headers["Origin"]
        assert refused(office, path.format(run=run.pk), headers) == 403


class TestOthers:
    def test_another_organisations_run_is_not_there(self, office: Office, run: Run) -> None:
        outsider = build_workshop("globex").admin
        for headers in (of_browser(office, outsider), Outside(office.url, token_of(outsider)).headers):
            assert close_code(office, f"/ws/runs/{run.pk}/", headers) == NOT_THERE

    @pytest.mark.parametrize("run_id", ["987654", "9" * 30])
    def test_a_run_that_there_is_not_is_not_there(self, office: Office, run_id: str) -> None:
        assert close_code(office, f"/ws/runs/{run_id}/", of_browser(office, office.member("admin"))) == NOT_THERE

    def test_another_organisations_inbox_counts_its_own_cards(self, office: Office, run: Run) -> None:
        outsider = Outside(office.url, token_of(build_workshop("globex").admin))
        with opened(office.url, "/ws/inbox/", outsider.headers) as socket:
            assert socket.next() == {"type": "inbox_changed", "payload": {"pending": 0}}
        with opened(office.url, "/ws/inbox/", office.outside("viewer").headers) as socket:
            assert socket.next() == {"type": "inbox_changed", "payload": {"pending": 1}}

    @pytest.mark.parametrize("role", ["viewer", "operator", "approver", "admin"])
    def test_every_role_may_watch(self, office: Office, run: Run, role: str) -> None:
        for headers in (of_browser(office, office.member(role)), office.outside(role).headers):
            with watching(office, run, headers) as socket:
                heard = socket.until("run_waiting")
                assert [message["seq"] for message in numbered(heard)] == numbers_of(run.pk)


class TestTheRightToLookEnds:
    @pytest.fixture
    def ends(self, office: Office) -> dict[str, Any]:
        """How each right ends, by the name of what proved it."""
        member = office.member("viewer")
        return {
            "session": lambda: Session.objects.all().delete(),
            "token": lambda: ApiToken.objects.update(revoked_at=Now()),
            "membership": member.delete,
            "account": lambda: type(member.user).objects.filter(pk=member.user_id).update(is_active=False),
        }

    @pytest.mark.parametrize("what", ["session", "token", "membership", "account"])
    def test_an_open_socket_is_closed(self, office: Office, run: Run, ends: dict[str, Any], what: str) -> None:
        headers = office.outside("viewer").headers if what == "token" else of_browser(office, office.member("viewer"))
        with watching(office, run, headers) as socket:
            socket.until("run_waiting")
            ends[what]()
            assert socket.close_code() == NO_LOGIN


def token_of(member: Membership) -> str:
    return issue_token(member, "journey")[1]


class TestWhatASocketHears:
    @pytest.mark.parametrize("after", ["0", "2", "9999", "-3", "x", "1e3", "٣", "9" * 40, ""])
    def test_it_begins_after_the_number_that_it_is_given(self, office: Office, run: Run, after: str) -> None:
        numbers = numbers_of(run.pk)
        first = int(after) if after in ("2", "9999") else len(numbers) if after == "9" * 40 else 0
        expected = [number for number in numbers if number > first]
        with opened(office.url, f"/ws/runs/{run.pk}/?after={after}", office.outside("viewer").headers) as socket:
            assert [socket.next()["seq"] for _ in expected] == expected
            assert_hears_nothing_more(office, run, socket)

    def test_it_resumes_where_it_is_told_to(self, office: Office, run: Run) -> None:
        numbers = numbers_of(run.pk)
        with office.outside("viewer").socket(run.pk) as socket:
            assert [socket.next()["seq"] for _ in numbers] == numbers
            socket.say('{"after": 2}')
            assert [socket.next()["seq"] for _ in numbers[2:]] == numbers[2:]
            assert_hears_nothing_more(office, run, socket)

    def test_nonsense_does_it_no_harm(self, office: Office, run: Run) -> None:
        numbers = numbers_of(run.pk)
        nonsense = (
            "", "null", "[]", "{}", '"after"', "{", "[" * 2000, '{"after": -1}', '{"after": true}', '{"after": 1.5}',
            '{"after": "1"}', '{"after": 99999999999999999999}', '{"after": null}', '{"type": "bell"}', "\x00", "🦊" * 500,
        )  # fmt: skip
        with office.outside("viewer").socket(run.pk) as socket:
            assert [socket.next()["seq"] for _ in numbers] == numbers
            for text in nonsense:
                socket.say(text)
            socket.say(b"\xff\xfe\x00")
            assert_hears_nothing_more(office, run, socket)

    @pytest.mark.parametrize("text", ["x" * 5000, "x" * 100_000])
    def test_too_much_at_once_ends_it_and_nothing_else(self, office: Office, run: Run, text: str) -> None:
        outside = office.outside("viewer")
        with outside.socket(run.pk) as socket, outside.socket(run.pk) as neighbour:
            socket.say(text)
            assert socket.close_code() == TOO_LONG
            assert [neighbour.next()["seq"] for _ in numbers_of(run.pk)] == numbers_of(run.pk)
        assert outside.get("/health")["status"] == "ok"


def assert_hears_nothing_more(office: Office, run: Run, socket: Socket) -> None:
    """The next thing that the socket hears is what happens next, not something old."""
    n = len(numbers_of(run.pk))
    office.workshop.say(run, "Are you there?")
    message = socket.next()
    assert (message["seq"], message["type"]) == (n + 1, "message_added")
