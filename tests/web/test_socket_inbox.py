"""The socket /ws/inbox/ sends the number of waiting cards and the current stop when it is opened
and after each change. It also sends the cards that have changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import transaction

from agents.approval_rules.models import ApprovalRule
from agents.approvals import decisions
from agents.platform import notify
from agents.runs import stops
from agents.runs.models import Approval
from agents.web.sockets import feeds, inbox_feed
from agents.web.sockets.database import database_to_async
from tests.features import feature
from tests.web.socket_client import SocketClient, in_loop
from tests.world import World, change

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]


def pending(message: dict[str, Any]) -> int:
    assert message["type"] == "inbox_changed"
    return int(message["payload"]["pending"])


def test_the_socket_counts_the_waiting_cards_of_the_organization(world: World) -> None:
    card = world.card()
    world.card()
    clients = world.client("viewer"), world.client("outsider")

    def deny() -> None:
        decisions.deny(world.member("approver"), card.pk, decisions.Decision(digest=card.digest))

    async def watch() -> list[int]:
        async with (
            SocketClient("/ws/inbox/", clients[0]) as ours,
            SocketClient("/ws/inbox/", clients[1]) as theirs,
        ):
            seen = [pending(await ours.message()), pending(await theirs.message())]
            await database_to_async(deny)()
            assert (await ours.message())["type"] == "card_changed"
            return [*seen, pending(await ours.message())]

    assert in_loop(watch()) == [2, 0, 1]
    assert Approval.objects.filter(status="pending").count() == 1


def test_the_socket_sends_a_stop_and_its_end(world: World) -> None:
    clients = world.client("viewer"), world.client("outsider")

    async def watch() -> list[Any]:
        async with (
            SocketClient("/ws/inbox/", clients[0]) as ours,
            SocketClient("/ws/inbox/", clients[1]) as theirs,
        ):
            seen = [(await ours.message())["payload"], (await theirs.message())["payload"]]
            await database_to_async(lambda: stops.stop_everything(world.member("operator")))()
            seen.append((await ours.message())["payload"])
            await database_to_async(lambda: stops.release_everything(world.member("admin")))()
            seen.append((await ours.message())["payload"])
            with pytest.raises(TimeoutError):
                await theirs.message(patience_s=0.3)
            return seen

    ours, theirs, stopped, released = in_loop(watch())
    assert ours == theirs == released == {"pending": 0, "stopped": None}
    assert (stopped["pending"], stopped["stopped"]["by"]) == (0, "operator")
    assert (
        abs((datetime.now(UTC) - datetime.fromisoformat(stopped["stopped"]["at"])).total_seconds())
        < 60
    )


def test_a_hint_announces_a_stop_without_waiting_for_the_poll(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "POLL_S", 3600.0)
    client, outsider = world.client("viewer"), world.client("outsider")

    async def watch() -> Any:
        async with SocketClient("/ws/inbox/", client) as ours:
            await ours.message()
            await database_to_async(lambda: stops.stop_everything(world.member("operator")))()
            return (await ours.message())["payload"]["stopped"]["by"]

    async def look_elsewhere() -> Any:
        async with SocketClient("/ws/inbox/", outsider) as theirs:
            return (await theirs.message())["payload"]["stopped"]

    assert in_loop(watch()) == "operator"
    assert in_loop(look_elsewhere()) is None


def test_people_without_access_are_refused(world: World) -> None:
    stranger = world.client("stranger")

    async def ask() -> list[int]:
        codes = []
        for socket in (
            SocketClient("/ws/inbox/", stranger),
            SocketClient("/ws/inbox/", token="nonsense"),
        ):
            async with socket:
                codes.append(await socket.close_code())
        return codes

    assert in_loop(ask()) == [4401, 4401]


ROWS = "/ws/inbox/?rows=1"
CREATE = "data.createRecord"


def deny(world: World, card: Approval) -> None:
    decisions.deny(world.member("approver"), card.pk, decisions.Decision(digest=card.digest))


def create(world: World, email: str) -> Approval:
    return world.card(tool=CREATE, params={"name": "New", "email": email})


def create_together(world: World, count: int) -> None:
    with transaction.atomic():
        for _ in range(count):
            world.card()


async def act(world: World, action: Callable[[], Any]) -> Any:
    """Change cards in a thread, and send the hint as a transaction does."""

    def act_and_ring() -> Any:
        result = action()
        notify.ring_inbox(world.acme.pk)
        return result

    return await database_to_async(act_and_ring)()


def list_ids(message: dict[str, Any]) -> list[int]:
    """List the ids of the cards whose rows are in the message."""
    return [int(pk) for pk in re.findall(r'data-row="(\d+)"', message["rows"])]


class TestAPageWithTheList:
    def test_gets_the_row_of_a_new_card_and_the_id_of_a_decided_card(self, world: World) -> None:
        first, client = world.card(), world.client("viewer")

        async def watch() -> tuple[Approval, list[dict[str, Any]]]:
            async with SocketClient(ROWS, client) as socket:
                seen = [await socket.message()]
                card = await act(world, world.destructive_card)
                seen.append(await socket.message())
                await act(world, lambda: deny(world, first))
                return card, [*seen, await socket.message()]

        card, messages = in_loop(watch())
        assert [pending(message) for message in messages] == [1, 2, 1]
        assert [list_ids(message) for message in messages] == [[], [card.pk], []]
        assert [message["payload"]["gone"] for message in messages] == [[], [], [str(first.pk)]]
        assert [message["payload"]["newest"] for message in messages] == [
            first.pk,
            card.pk,
            card.pk,
        ]

    def test_gets_one_removed_and_one_new_card_for_a_replaced_card(self, world: World) -> None:
        card, client = world.card(), world.client("viewer")
        params = change(world.records[0], "+1 555 0199")
        decision = decisions.Decision(digest=card.digest)

        async def watch() -> tuple[Approval, dict[str, Any]]:
            async with SocketClient(ROWS, client) as socket:
                await socket.message()
                edited = await act(
                    world,
                    lambda: decisions.edit(world.member("approver"), card.pk, decision, params),
                )
                return edited, await socket.message()

        edited, message = in_loop(watch())
        assert (list_ids(message), message["payload"]["gone"], pending(message)) == (
            [edited.pk],
            [str(card.pk)],
            1,
        )

    def test_gets_only_numbers_if_there_are_too_many_new_rows(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(inbox_feed, "MAX_NEW_ROWS", 2)
        client = world.client("viewer")

        async def watch() -> list[dict[str, Any]]:
            async with SocketClient(ROWS, client) as socket:
                await socket.message()
                await act(world, lambda: create_together(world, 3))
                seen = [await socket.message()]
                await act(world, lambda: create_together(world, 2))
                return [*seen, await socket.message()]

        messages = in_loop(watch())
        assert [(pending(message), len(list_ids(message))) for message in messages] == [
            (3, 0),
            (5, 2),
        ]

    def test_can_detect_a_missed_change_by_the_numbers(self, world: World) -> None:
        """Another page keeps the feed running, so the feed still remembers the changes that it has
        already sent."""
        card, client, other = world.card(), world.client("viewer"), world.client("operator")

        async def watch() -> tuple[Approval, dict[str, Any]]:
            async with SocketClient(ROWS, other) as steady:
                await steady.message()
                async with SocketClient(ROWS, client) as socket:
                    await socket.message()
                await act(world, lambda: deny(world, card))
                await steady.message()
                missed = await act(world, world.card)
                await steady.message()
                async with SocketClient(ROWS, client) as socket:
                    return missed, await socket.message()

        missed, message = in_loop(watch())
        assert (list_ids(message), message["payload"]["gone"]) == ([], [])
        assert (pending(message), message["payload"]["newest"]) == (1, missed.pk)

    def test_gets_a_change_after_which_the_number_of_cards_and_the_newest_id_are_the_same(
        self, world: World
    ) -> None:
        """Ids are assigned before the commit: a card that is committed last can have a low id."""
        late, other, _ = world.card(), world.card(), world.card()
        Approval.objects.filter(pk=late.pk).delete()
        client = world.client("viewer")

        def swap() -> None:
            with transaction.atomic():
                late.save(force_insert=True)
                Approval.objects.filter(pk=other.pk).update(status="cancelled")

        async def watch() -> dict[str, Any]:
            async with SocketClient(ROWS, client) as socket:
                await socket.message()
                await act(world, swap)
                return await socket.message()

        message = in_loop(watch())
        assert (list_ids(message), message["payload"]["gone"]) == ([late.pk], [str(other.pk)])

    @feature(
        "The inbox",
        "A new row is compared with all waiting cards of its shape",
        "agents/web/lists/inbox_rows.py",
    )
    def test_gets_a_new_card_with_its_odd_values_flagged(self, world: World) -> None:
        for name in "abc":
            create(world, f"{name}@acme.example")
        client = world.client("viewer")

        async def watch() -> str:
            async with SocketClient(ROWS, client) as socket:
                await socket.message()
                await act(world, lambda: create(world, "d@evil.example"))
                return str((await socket.message())["rows"])

        html = in_loop(watch())
        assert 'data-odd="different domain in “email”"' in html
        assert 'class="row level-write grouped"' in html
        values = re.findall(r'<i class="field-name">(\w+)</i>', html)
        assert values == ["email", "name", "status"], "the one that differs comes first"
        assert "data-in-group" in html
        assert "data-alone" in html

    def test_gets_a_plain_row_for_a_shape_of_two_cards(self, world: World) -> None:
        own, *others = (create(world, f"{name}@acme.example") for name in "abc")
        Approval.objects.filter(pk__in=[card.pk for card in others]).update(
            organization=world.globex
        )
        assert own.shape == others[0].shape
        client = world.client("viewer")

        async def watch() -> str:
            async with SocketClient(ROWS, client) as socket:
                await socket.message()
                await act(world, lambda: create(world, "d@evil.example"))
                return str((await socket.message())["rows"])

        html = in_loop(watch())
        assert "data-row" in html
        assert "grouped" not in html
        assert "data-in-group" not in html

    def test_does_not_get_a_card_of_another_organization(self, world: World) -> None:
        client, outsider = world.client("viewer"), world.client("outsider")

        async def watch() -> list[dict[str, Any]]:
            async with SocketClient(ROWS, client) as ours, SocketClient(ROWS, outsider) as theirs:
                seen = [await ours.message(), await theirs.message()]
                await act(world, world.card)
                seen.append(await ours.message())
                await database_to_async(lambda: stops.stop_everything(world.member("outsider")))()
                return [*seen, await theirs.message()]

        messages = in_loop(watch())
        assert [(pending(message), len(list_ids(message))) for message in messages] == [
            (0, 0),
            (0, 0),
            (1, 1),
            (0, 0),
        ]
        assert (messages[-1]["payload"]["newest"], messages[-1]["payload"]["stopped"]["by"]) == (
            0,
            "outsider",
        )

    def test_sees_who_views_a_card_only_within_its_organization(self, world: World) -> None:
        card = world.card()
        viewer, operator, outsider = (
            world.client(name) for name in ("viewer", "operator", "outsider")
        )

        async def watch() -> list[dict[str, Any]]:
            async with (
                SocketClient(ROWS, viewer) as ours,
                SocketClient("/ws/inbox/", operator) as elsewhere,
                SocketClient(ROWS, outsider) as theirs,
            ):
                for socket in (ours, elsewhere, theirs):
                    await socket.message()
                await elsewhere.say(f'{{"looking_at": {card.pk}}}')
                seen = [await ours.message()]
                await theirs.say('{"looking_at": 7}')
                seen.append(await theirs.message())
                await act(world, world.card)
                return [*seen, await ours.message(), await elsewhere.message()]

        *presences, ours, elsewhere = in_loop(watch())
        assert [message["payload"] for message in presences] == [
            {"user": "operator", "card": str(card.pk)},
            {"user": "outsider", "card": "7"},
        ]
        assert (ours["type"], elsewhere["type"]) == ("inbox_changed", "card_changed")


class TestASocketWithoutRows:
    @feature(
        "The inbox",
        "Clients without the list get each changed card with its status",
        "agents/web/sockets/inbox_feed.py",
    )
    def test_gets_each_changed_card_with_its_current_status(self, world: World) -> None:
        card, client = world.card(), world.client("viewer")

        async def watch() -> list[dict[str, Any]]:
            async with SocketClient("/ws/inbox/", client) as socket:
                await socket.message()
                await act(world, world.card)
                seen = await socket.messages(2)
                await act(world, lambda: deny(world, card))
                return [*seen, *await socket.messages(2)]

        added, two, left, one = in_loop(watch())
        new = Approval.objects.latest("pk")
        assert added == {
            "type": "card_changed",
            "payload": {"approval_id": str(new.pk), "status": "pending"},
        }
        assert left == {
            "type": "card_changed",
            "payload": {"approval_id": str(card.pk), "status": "denied"},
        }
        assert [(pending(state), "rows" in state) for state in (two, one)] == [
            (2, False),
            (1, False),
        ]

    def test_does_not_get_a_card_of_another_organization(self, world: World) -> None:
        client, outsider = world.client("viewer"), world.client("outsider")

        async def watch() -> list[str]:
            async with (
                SocketClient("/ws/inbox/", client) as ours,
                SocketClient("/ws/inbox/", outsider) as theirs,
            ):
                await ours.message()
                await theirs.message()
                await act(world, world.card)
                seen = await ours.messages(2)
                await database_to_async(lambda: stops.stop_everything(world.member("outsider")))()
                return [message["type"] for message in (*seen, await theirs.message())]

        assert in_loop(watch()) == ["card_changed", "inbox_changed", "inbox_changed"]

    def test_gets_the_card_even_if_a_page_with_the_list_gets_its_row(self, world: World) -> None:
        clients = world.client("viewer"), world.client("operator")

        async def watch() -> list[str]:
            async with (
                SocketClient("/ws/inbox/", clients[0]) as plain,
                SocketClient(ROWS, clients[1]) as listed,
            ):
                await plain.message()
                await listed.message()
                await act(world, world.card)
                return [(await socket.message())["type"] for socket in (plain, plain, listed)]

        assert in_loop(watch()) == ["card_changed", "inbox_changed", "inbox_changed"]


class TestVotes:
    @pytest.mark.parametrize("address", ["/ws/inbox/", ROWS])
    def test_on_a_card_that_needs_more_people_are_sent_to_every_page_of_the_organization(
        self, world: World, address: str
    ) -> None:
        ApprovalRule.objects.create(organization=world.acme, name="two people", needed=2)
        card = world.card()
        clients = world.client("viewer"), world.client("outsider")

        async def watch() -> list[dict[str, Any]]:
            async with (
                SocketClient(address, clients[0]) as ours,
                SocketClient(address, clients[1]) as theirs,
            ):
                await ours.message()
                await theirs.message()
                await act(world, lambda: approve(world, card))
                seen = [await ours.message()]
                await act(world, lambda: decisions.undo(world.member("approver"), card.pk))
                seen.append(await ours.message())
                await database_to_async(lambda: stops.stop_everything(world.member("outsider")))()
                return [*seen, await theirs.message()]

        cast, withdrawn, others = in_loop(watch())
        payload = {"approval_id": str(card.pk), "status": "pending"}
        assert cast == {"type": "card_changed", "payload": payload | {"approved_by": ["approver"]}}
        assert withdrawn == {"type": "card_changed", "payload": payload | {"approved_by": []}}
        assert others["type"] == "inbox_changed"


def approve(world: World, card: Approval) -> None:
    decisions.approve(world.member("approver"), card.pk, decisions.Decision(digest=card.digest))
