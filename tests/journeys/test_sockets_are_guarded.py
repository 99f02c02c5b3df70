"""A socket opens for a member of the run's organization from a page of ours, and closes when that ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db.models.functions import Now
from websockets.exceptions import InvalidStatus

from agents.accounts.membership import issue_token
from agents.accounts.models import ApiToken, Membership
from agents.runs import actions
from agents.runs.models import Run
from tests.journeys.office import Office, numbers_of, run_of
from tests.journeys.outside import Outside, Socket, numbered, opened
from tests.workshop import asking, build_workshop, call

pytestmark = pytest.mark.once

NO_LOGIN = 4401
NOT_THERE = 4404
TOO_LONG = 4413
PATHS = ("/ws/runs/{run}/", "/ws/inbox/")
NONSENSE = (
    "", "null", "[]", "{}", '"after"', "{", "[" * 2000, '{"after": -1}', '{"after": true}', '{"after": 1.5}',
    '{"after": "1"}', '{"after": 99999999999999999999}', '{"after": null}', '{"type": "bell"}', "\x00", "🦊" * 500,
)  # fmt: skip


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

    def test_a_login_without_an_organization_is_nobody(self, office: Office, run: Run, path: str) -> None:
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
    def test_another_organizations_run_is_not_there(self, office: Office, run: Run) -> None:
        outsider = build_workshop("globex").admin
        for headers in (of_browser(office, outsider), Outside(office.url, token_of(outsider)).headers):
            assert close_code(office, f"/ws/runs/{run.pk}/", headers) == NOT_THERE

    @pytest.mark.parametrize("run_id", ["987654", "9" * 30])
    def test_a_run_that_there_is_not_is_not_there(self, office: Office, run_id: str) -> None:
        assert close_code(office, f"/ws/runs/{run_id}/", of_browser(office, office.member("admin"))) == NOT_THERE

    def test_another_organizations_inbox_counts_its_own_cards(self, office: Office, run: Run) -> None:
        outsider = Outside(office.url, token_of(build_workshop("globex").admin))
        with opened(office.url, "/ws/inbox/", outsider.headers) as socket:
            assert socket.next() == {"type": "inbox_changed", "payload": {"pending": 0, "stopped": None}, "html": ""}
        with opened(office.url, "/ws/inbox/", office.outside("viewer").headers) as socket:
            assert socket.next() == {"type": "inbox_changed", "payload": {"pending": 1, "stopped": None}, "html": ""}

    @pytest.mark.parametrize("role", ["viewer", "operator", "approver", "admin"])
    def test_every_role_may_watch(self, office: Office, run: Run, role: str) -> None:
        for headers in (of_browser(office, office.member(role)), office.outside(role).headers):
            with watching(office, run, headers) as socket:
                heard = socket.until("run_waiting")
                assert [message["seq"] for message in numbered(heard)] == numbers_of(run.pk)


def test_an_open_socket_closes_when_the_right_to_look_ends(office: Office, run: Run) -> None:
    headers = {role: of_browser(office, office.member(role)) for role in ("viewer", "operator", "approver")}
    headers["token"] = office.outside("admin").headers
    with ExitStack() as stack:
        open_ones = {name: stack.enter_context(watching(office, run, each)) for name, each in headers.items()}
        staying = stack.enter_context(watching(office, run, of_browser(office, office.member("admin"))))
        for socket in [*open_ones.values(), staying]:
            socket.until("run_waiting")
        Session.objects.filter(pk=headers["viewer"]["Cookie"].partition("=")[2]).delete()
        office.member("operator").delete()
        User.objects.filter(pk=office.member("approver").user_id).update(is_active=False)
        ApiToken.objects.update(revoked_at=Now())
        assert {name: socket.close_code() for name, socket in open_ones.items()} == dict.fromkeys(headers, NO_LOGIN)
        actions.add_message(office.member("admin"), run.pk, "Who is still there?")
        assert staying.next()["type"] == "message_added"


def token_of(member: Membership) -> str:
    return issue_token(member, "journey")[1]


class TestWhatASocketHears:
    @pytest.mark.parametrize(
        ("after", "first"), [("0", 1), ("2", 3), ("-3", 1), ("x", 1), ("1e3", 1), ("٣", 1), ("", 1)]
    )
    def test_it_begins_after_the_number_that_it_is_given(
        self, office: Office, run: Run, after: str, first: int
    ) -> None:
        expected = numbers_of(run.pk)[first - 1 :]
        with opened(office.url, f"/ws/runs/{run.pk}/?after={after}", office.outside("viewer").headers) as socket:
            assert [socket.next()["seq"] for _ in expected] == expected
            assert_hears_what_is_next(office, run, socket)

    @pytest.mark.parametrize("after", ["9999", "9" * 40])
    def test_a_number_that_is_not_there_yet_is_silent_until_it_resumes(
        self, office: Office, run: Run, after: str
    ) -> None:
        with opened(office.url, f"/ws/runs/{run.pk}/?after={after}", office.outside("viewer").headers) as socket:
            with pytest.raises(TimeoutError):
                socket.next(0.5)
            socket.say('{"after": 1}')
            assert socket.next()["seq"] == 2

    def test_it_resumes_where_it_is_told_to(self, office: Office, run: Run) -> None:
        numbers = numbers_of(run.pk)
        with office.outside("viewer").socket(run.pk) as socket:
            assert [socket.next()["seq"] for _ in numbers] == numbers
            socket.say('{"after": 2}')
            assert [socket.next()["seq"] for _ in numbers[2:]] == numbers[2:]
            assert_hears_what_is_next(office, run, socket)

    def test_nonsense_does_it_no_harm(self, office: Office, run: Run) -> None:
        numbers = numbers_of(run.pk)
        with office.outside("viewer").socket(run.pk) as socket:
            assert [socket.next()["seq"] for _ in numbers] == numbers
            for text in NONSENSE:
                socket.say(text)
            socket.say(b"\xff\xfe\x00")
            assert_hears_what_is_next(office, run, socket)

    @pytest.mark.parametrize(("length", "code"), [(5000, TOO_LONG), (100_000, None)])
    def test_too_much_at_once_ends_it_and_nothing_else(
        self, office: Office, run: Run, length: int, code: int | None
    ) -> None:
        outside = office.outside("viewer")
        with outside.socket(run.pk) as socket, outside.socket(run.pk) as neighbor:
            socket.say("x" * length)
            assert socket.close_code() == code
            assert [neighbor.next()["seq"] for _ in numbers_of(run.pk)] == numbers_of(run.pk)
        assert outside.get("/health")["status"] == "ok"


def assert_hears_what_is_next(office: Office, run: Run, socket: Socket) -> None:
    """The next thing that the socket hears is what happens next, not something old."""
    n = len(numbers_of(run.pk))
    office.outside("operator").post(f"/runs/{run.pk}/messages", {"text": "Are you there?"})
    message = socket.next()
    assert (message["seq"], message["type"]) == (n + 1, "message_added")
