"""*What changed* on a card that was asked again names every difference between the two cards, and
agrees with the sentence and the effect."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from agents.approvals import decisions
from agents.approvals.current_calls import replace_unstarted_card
from agents.runs.models import Approval, CallStatus
from agents.web.cards.differences import MAX_CHANGES, NOT_CHANGED, Change, find_differences
from tests.approvals.test_drift import Loud
from tests.probes import Effect
from tests.recorder import Recorder
from tests.workshop import Workshop, asking, call, statuses
from tools.contract import Preview, Target
from tools.office.records.models import Record
from tools.toolbox.toolbox import Toolbox

Row = tuple[str, Any, Any]


def build_card(*targets: Target, sentence: str = "", effect: str = "update") -> Approval:
    preview = Preview(effect, targets)
    return Approval(preview=preview.as_json(), sentence=sentence, level="write")


def list_rows(old: Approval, new: Approval) -> list[Row]:
    return [(each.name, each.before, each.after) for each in find_differences(old, new)]


def target(label: str = "Acme", pk: str = "1", version: int = 1, **values: Any) -> Target:
    """Build a target whose status changes from active to inactive."""
    before, after = {"status": "active"}, {"status": "inactive"}
    return Target(
        pk, label, version, before | values.get("before", {}), after | values.get("after", {})
    )


class TestWhatChanged:
    @pytest.mark.parametrize(
        ("new", "rows"),
        [
            (target(), []),
            (target(version=2), [("other values", "not shown", "changed meanwhile")]),
            (target("Evil"), [("target", "Acme", "Evil")]),
            (
                target("Evil", before={"status": "pending"}),
                [("target", "Acme", "Evil"), ("status (current value)", "active", "pending")],
            ),
            (
                Target("1", "Acme", 2, {"score": 1}, {"score": 2}),
                [
                    ("status (new value)", "inactive", NOT_CHANGED),
                    ("score (new value)", NOT_CHANGED, 2),
                ],
            ),
            (
                target(after={"list_is_new": True}),
                [("list_is_new (new value)", NOT_CHANGED, True)],
            ),
        ],
        ids=["nothing", "a version", "a name", "name and value", "another field", "a new field"],
    )
    def test_lists_each_difference_of_a_target(self, new: Target, rows: list[Row]) -> None:
        assert list_rows(build_card(target()), build_card(new)) == rows

    def test_lists_a_change_of_the_effect(self) -> None:
        old, new = build_card(target(), effect="create"), build_card(target(), effect="replace")
        assert list_rows(old, new) == [("effect", "create", "replace")]

    def test_lists_a_change_that_all_targets_share_only_once(self) -> None:
        def build(*, is_new: bool) -> Approval:
            after = {"list_is_new": is_new}
            return build_card(*(target(f"No {one}", str(one), after=after) for one in range(3)))

        assert list_rows(build(is_new=True), build(is_new=False)) == [
            ("list_is_new (new value)", True, False)
        ]

    def test_names_the_target_if_only_one_of_several_changed(self) -> None:
        one, two = target(), target("Zeta", "2")
        old, new = build_card(one, two), build_card(one, target("Zebra", "2"))
        assert list_rows(old, new) == [("Zebra: target", "Zeta", "Zebra")]

    def test_says_how_many_more_differences_there_are(self) -> None:
        def build(value: str) -> Approval:
            after = {f"field {number}": f"{value} {number}" for number in range(30)}
            return build_card(target(after=after))

        rows = list_rows(build("a"), build("b"))
        assert len(rows) == MAX_CHANGES
        assert rows[-1] == ("more", None, "11 more differences")

    def test_distinguishes_its_own_words_from_a_value_with_the_same_text(self) -> None:
        words, value = (
            Change("status", "active", after).diff_values[1]
            for after in (NOT_CHANGED, "not changed")
        )
        assert (words, 'class="value"' in value) == ('<span class="small">not changed</span>', True)

    def test_lists_every_difference_of_random_cards(self) -> None:
        """Each changed field, label and version is named, but no unchanged one."""
        chance = random.Random(39)
        names, values = "abcd", ["x", "y", None, True, 1]

        def pick() -> dict[str, Any]:
            return {name: chance.choice(values) for name in names if chance.random() < 0.5}

        for _ in range(3_000):
            old, new = (
                Target("1", chance.choice("PQ"), chance.randint(1, 2), pick(), pick())
                for _ in range(2)
            )
            rows = list_rows(build_card(old), build_card(new))
            assert bool(rows) == (old != new)
            named = {name.partition(" ")[0] for name, _, _ in rows}
            fields = {
                name
                for name in names
                if old.after.get(name, NOT_CHANGED) != new.after.get(name, NOT_CHANGED)
                or (
                    (name in old.before and name in new.before)
                    and old.before[name] != new.before[name]
                )
            }
            assert fields <= named, (old, new, rows)
            assert named <= {*names, "target", "other"}
            if old.label != new.label:
                assert "target" in named or ("P", "Q") in [(a, b) for _, a, b in rows]


def rename(record: Record) -> None:
    Record.objects.filter(pk=record.pk).update(name="Evil", version=2)


def set_phone(record: Record) -> None:
    Record.objects.filter(pk=record.pk).update(phone="1", version=2)


def delete(record: Record) -> None:
    Record.objects.filter(pk=record.pk).delete()


@pytest.mark.django_db(transaction=True)
class TestADriftedCard:
    @pytest.mark.parametrize(
        ("change", "sentence", "row"),
        [
            (
                rename,
                "Update record **Evil**: status “active” → “inactive”",
                ("target", "Acme Corp", "Evil"),
            ),
            (
                set_phone,
                "Update record **Acme Corp**: status “active” → “inactive”",
                ("other values", "not shown", "changed meanwhile"),
            ),
            (
                delete,
                "No longer possible: Update record **{pk}**: status “inactive”",
                ("effect", "shown on the earlier card", "no longer possible"),
            ),
        ],
    )
    def test_shows_the_same_change_in_its_sentence_its_differences_and_its_effect(
        self,
        workshop: Workshop,
        change: Callable[[Record], None],
        sentence: str,
        row: Row,
    ) -> None:
        record = workshop.record()
        changed = {"record_id": str(record.pk), "changes": {"status": "inactive"}}
        workshop.play(asking(call("data.updateRecord", **changed)))
        old = workshop.card(workshop.work())
        workshop.approve(old)
        change(record)
        new = workshop.card(workshop.drive(old.run))
        assert new.sentence == sentence.format(pk=record.pk)
        assert list_rows(old, new) == [row]
        assert (new.preview["effect"] == "refused") == new.sentence.startswith("No longer possible")

    @pytest.mark.parametrize("is_undone", [True, False], ids=["undone", "not started in time"])
    def test_that_never_started_shows_the_params_of_its_sentence(
        self, workshop: Workshop, toolbox: Toolbox, recorder: Recorder, is_undone: bool
    ) -> None:
        """The tool now parses its params differently."""
        workshop.play(asking(call("probe.effect", name="a")))
        card = workshop.card(workshop.work())
        workshop.approve(card, grace_s=60)
        toolbox.unregister(Effect.name)
        toolbox.register(type("Effect", (Effect,), {"Params": Loud})())
        if is_undone:
            decisions.undo(workshop.approver, card.pk)
        else:
            assert replace_unstarted_card(card.pk, "The approval was not used in time.")
        new = workshop.card(card.run)
        assert (new.params, new.sentence) == ({"name": "A"}, 'Use probe.effect: “{"name":"A"}”')
        assert ("name", "a", "A") in list_rows(card, new)
        workshop.approve(new)
        assert statuses(workshop.drive(card.run)) == [CallStatus.SUCCEEDED]
