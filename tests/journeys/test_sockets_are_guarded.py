"""A socket opens only for members of the run's organization, from pages of our own site, and closes
when access ends."""

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
from tests.journeys.api_client import ApiClient, Socket, open_socket, select_events
from tests.journeys.office import Office, list_event_numbers, load_run
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
    """Start a run that waits for a decision."""
    record = office.workshop.record()
    office.workshop.play(
        asking(call("data.updateRecord", record_id=str(record.pk), changes={"score": 1}))
    )
    run = office.submit()
    office.await_cards(run.pk)
    return load_run(run.pk)


def browser_headers(
    office: Office, member: Membership | None = None, origin: str = ""
) -> dict[str, str]:
    """Return the headers that a page of our site, or of another origin, sends; with this person's
    session, if a person is given."""
    cookie = (
        {"Cookie": f"{settings.SESSION_COOKIE_NAME}={office.session(member)}"} if member else {}
    )
    return {"Origin": origin or office.url, **cookie}


@contextmanager
def watch_run(office: Office, run: Run, headers: dict[str, str]) -> Iterator[Socket]:
    with open_socket(office.url, f"/ws/runs/{run.pk}/", headers) as socket:
        yield socket


def get_refusal(office: Office, path: str, headers: dict[str, str]) -> int:
    """Return the HTTP status with which the handshake is refused; 0 if it is not."""
    try:
        with open_socket(office.url, path, headers):
            return 0
    except InvalidStatus as answer:
        return answer.response.status_code


def close_code(office: Office, path: str, headers: dict[str, str]) -> int | None:
    with open_socket(office.url, path, headers) as socket:
        return socket.close_code()


@pytest.mark.parametrize("path", PATHS)
class TestASocket:
    def test_is_closed_without_a_login(self, office: Office, run: Run, path: str) -> None:
        assert close_code(office, path.format(run=run.pk), browser_headers(office)) == NO_LOGIN

    def test_is_refused_with_a_wrong_token_despite_a_valid_session(
        self, office: Office, run: Run, path: str
    ) -> None:
        wrong = {"Authorization": "Bearer gadget_wrong"}
        assert close_code(office, path.format(run=run.pk), wrong) == NO_LOGIN
        both = {**browser_headers(office, office.member("admin")), **wrong}
        assert close_code(office, path.format(run=run.pk), both) == NO_LOGIN

    def test_is_refused_for_an_account_without_an_organization(
        self, office: Office, run: Run, path: str
    ) -> None:
        member = office.member("viewer")
        headers = browser_headers(office, member)
        member.delete()
        assert close_code(office, path.format(run=run.pk), headers) == NO_LOGIN

    @pytest.mark.parametrize(
        "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost"]
    )
    def test_is_refused_from_another_origin_even_with_a_session(
        self, office: Office, run: Run, path: str, origin: str
    ) -> None:
        headers = browser_headers(office, office.member("admin"), origin)
        assert get_refusal(office, path.format(run=run.pk), headers) == 403

    def test_is_refused_with_a_session_but_without_an_origin(
        self, office: Office, run: Run, path: str
    ) -> None:
        headers = browser_headers(office, office.member("admin"))
        del headers["Origin"]
        assert get_refusal(office, path.format(run=run.pk), headers) == 403


class TestTheSocketOfAMember:
    def test_does_not_find_a_run_of_another_organization(self, office: Office, run: Run) -> None:
        outsider = build_workshop("globex").admin
        for headers in (
            browser_headers(office, outsider),
            ApiClient(office.url, create_token(outsider)).headers,
        ):
            assert close_code(office, f"/ws/runs/{run.pk}/", headers) == NOT_THERE

    @pytest.mark.parametrize("run_id", ["987654", "9" * 30])
    def test_does_not_find_a_missing_run(self, office: Office, run_id: str) -> None:
        assert (
            close_code(
                office, f"/ws/runs/{run_id}/", browser_headers(office, office.member("admin"))
            )
            == NOT_THERE
        )

    def test_counts_only_cards_of_its_own_organization(self, office: Office, run: Run) -> None:
        outsider = ApiClient(office.url, create_token(build_workshop("globex").admin))
        with open_socket(office.url, "/ws/inbox/", outsider.headers) as socket:
            assert socket.next() == {
                "type": "inbox_changed",
                "payload": {"pending": 0, "stopped": None},
                "html": "",
            }
        with open_socket(office.url, "/ws/inbox/", office.api_client("viewer").headers) as socket:
            assert socket.next() == {
                "type": "inbox_changed",
                "payload": {"pending": 1, "stopped": None},
                "html": "",
            }

    @pytest.mark.parametrize("role", ["viewer", "operator", "approver", "admin"])
    def test_shows_a_run_to_members_with_any_role(
        self, office: Office, run: Run, role: str
    ) -> None:
        for headers in (
            browser_headers(office, office.member(role)),
            office.api_client(role).headers,
        ):
            with watch_run(office, run, headers) as socket:
                heard = socket.receive_until("run_waiting")
                assert [message["seq"] for message in select_events(heard)] == list_event_numbers(
                    run.pk
                )


@pytest.mark.every_commit
def test_an_open_socket_closes_when_access_ends(office: Office, run: Run) -> None:
    headers = {
        role: browser_headers(office, office.member(role))
        for role in ("viewer", "operator", "approver")
    }
    headers["token"] = office.api_client("admin").headers
    with ExitStack() as stack:
        open_ones = {
            name: stack.enter_context(watch_run(office, run, each))
            for name, each in headers.items()
        }
        staying = stack.enter_context(
            watch_run(office, run, browser_headers(office, office.member("admin")))
        )
        for socket in [*open_ones.values(), staying]:
            socket.receive_until("run_waiting")
        Session.objects.filter(pk=headers["viewer"]["Cookie"].partition("=")[2]).delete()
        office.member("operator").delete()
        User.objects.filter(pk=office.member("approver").user_id).update(is_active=False)
        ApiToken.objects.update(revoked_at=Now())
        assert {name: socket.close_code() for name, socket in open_ones.items()} == dict.fromkeys(
            headers, NO_LOGIN
        )
        actions.add_message(office.member("admin"), run.pk, "Who is still there?")
        assert staying.next()["type"] == "message_added"


def create_token(member: Membership) -> str:
    return issue_token(member, "journey")[1]


class TestEventsOfASocket:
    @pytest.mark.parametrize(
        ("after", "first"), [("0", 1), ("2", 3), ("-3", 1), ("x", 1), ("1e3", 1), ("٣", 1), ("", 1)]
    )
    def test_start_after_the_given_number(
        self, office: Office, run: Run, after: str, first: int
    ) -> None:
        expected = list_event_numbers(run.pk)[first - 1 :]
        with open_socket(
            office.url, f"/ws/runs/{run.pk}/?after={after}", office.api_client("viewer").headers
        ) as socket:
            assert [socket.next()["seq"] for _ in expected] == expected
            assert_hears_what_is_next(office, run, socket)

    @pytest.mark.parametrize("after", ["9999", "9" * 40])
    def test_wait_for_a_number_in_the_future(self, office: Office, run: Run, after: str) -> None:
        with open_socket(
            office.url, f"/ws/runs/{run.pk}/?after={after}", office.api_client("viewer").headers
        ) as socket:
            with pytest.raises(TimeoutError):
                socket.next(0.5)
            socket.send('{"after": 1}')
            assert socket.next()["seq"] == 2

    def test_resume_from_the_requested_number(self, office: Office, run: Run) -> None:
        numbers = list_event_numbers(run.pk)
        with office.api_client("viewer").socket(run.pk) as socket:
            assert [socket.next()["seq"] for _ in numbers] == numbers
            socket.send('{"after": 2}')
            assert [socket.next()["seq"] for _ in numbers[2:]] == numbers[2:]
            assert_hears_what_is_next(office, run, socket)

    def test_continue_after_malformed_messages(self, office: Office, run: Run) -> None:
        numbers = list_event_numbers(run.pk)
        with office.api_client("viewer").socket(run.pk) as socket:
            assert [socket.next()["seq"] for _ in numbers] == numbers
            for text in NONSENSE:
                socket.send(text)
            socket.send(b"\xff\xfe\x00")
            assert_hears_what_is_next(office, run, socket)

    @pytest.mark.parametrize(("length", "code"), [(5000, TOO_LONG), (100_000, None)])
    def test_end_if_the_client_sends_too_much(
        self, office: Office, run: Run, length: int, code: int | None
    ) -> None:
        outside = office.api_client("viewer")
        with outside.socket(run.pk) as socket, outside.socket(run.pk) as neighbor:
            socket.send("x" * length)
            assert socket.close_code() == code
            assert [
                neighbor.next()["seq"] for _ in list_event_numbers(run.pk)
            ] == list_event_numbers(run.pk)
        assert outside.get("/health")["status"] == "ok"


def assert_hears_what_is_next(office: Office, run: Run, socket: Socket) -> None:
    """Check that the socket's next message is about a new event, not an old one."""
    n = len(list_event_numbers(run.pk))
    office.api_client("operator").post(f"/runs/{run.pk}/messages", {"text": "Are you there?"})
    message = socket.next()
    assert (message["seq"], message["type"]) == (n + 1, "message_added")
