"""A card says what would happen, and can be decided with plain forms."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents import approvals
from agents.models import Approval, ApprovalStatus, CallStatus, Employee, Pass, Run, ToolCall
from tests.web.world import DELETE, World, change, make_world, nobody

pytestmark = pytest.mark.django_db

TOKEN = "csrfmiddlewaretoken"
ENDS = {"changed": 'class="facts"', "effect": 'class="why"'}


@pytest.fixture
def world() -> World:
    return make_world()


def text_of(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def card_page(world: World, card: Approval, username: str = "approver") -> str:
    return text_of(world.client(username), f"/approvals/{card.pk}/")


def section(html: str, name: str) -> str:
    """The part of the card with this class, up to the next part."""
    return html.split(f'<div class="{name}">')[1].split(ENDS[name], maxsplit=1)[0]


def input_of(html: str, name: str) -> str:
    """The input of this name with what is said below it."""
    return html.split(f'name="{name}"')[1].split("</label>", maxsplit=1)[0]


def post(world: World, card: Approval, action: str, username: str = "approver", **fields: Any) -> Any:
    return world.client(username).post(f"/approvals/{card.pk}/{action}/", {"digest": card.digest, **fields})


def test_it_shows_level_sentence_effect_and_reason(world: World) -> None:
    card = world.card()
    Pass.objects.create(run=card.run, number=1, response={}, text="Trust me: https://evil.example", messages_upto=1)
    html = card_page(world, card)
    for part in (
        "WRITE",
        "creates or changes things",
        "+1 555 0100",
        "write level",
        "not verified",
        "Approve: update Acme Corp",
    ):
        assert part in html
    assert "evil.example" not in html
    assert "<strong><bdi>Acme Corp</bdi></strong>" in html


def test_it_tells_the_earlier_decisions_about_the_same_tool_and_employee(world: World) -> None:
    def denied(card: Approval) -> Approval:
        decision = approvals.Decision(digest=card.digest, reason="The number is <old>.")
        return approvals.deny(world.member("approver"), card.pk, decision)

    assert "Earlier decisions" not in card_page(world, world.card())
    mine, another = denied(world.card()), denied(world.destructive_card())
    somebody_else = Employee.objects.create(organization=world.acme, name="Eve", provider=world.employee.provider)
    theirs = world.card()
    Run.objects.filter(pk=theirs.run_id).update(employee=somebody_else)
    foreign = denied(theirs)
    html = card_page(world, world.card())
    assert "The number is &lt;old&gt;." in html
    links = [f"/approvals/{card.pk}/" in html for card in (mine, another, foreign)]
    assert links == [True, False, False]


def test_what_cannot_be_previewed_is_said_aloud(world: World) -> None:
    card = world.card()
    preview = {
        "effect": "unknown",
        "targets": [],
        "total": 0,
        "reversible": False,
        "problem": "The tool has no preview.",
    }
    Approval.objects.filter(pk=card.pk).update(preview=preview)
    html = card_page(world, card)
    assert "The effect cannot be previewed." in html
    assert "not known" in html


def test_hidden_characters_of_a_record_are_visible(world: World) -> None:
    world.records[0].name = "Acme \u202eproC <b>"
    world.records[0].save()
    html = card_page(world, world.card())
    assert "⟦U+202E⟧" in html
    assert "\u202e" not in re.sub(r"<(input|textarea)[^>]*>[^<]*", "", html)
    assert "<b>" not in html.split('class="sentence"')[1].split("</div>")[0]


def test_a_long_value_is_clamped_with_its_length(world: World) -> None:
    html = card_page(world, world.card(params=change(world.records[0], "9" * 30) | {"changes": {"notes": "n" * 3000}}))
    assert "3,000 characters" in html


def test_all_affected_are_shown_the_first_five_at_once(world: World) -> None:
    targets = [
        {"id": str(n), "label": f"Company {n}", "version": 1, "before": {"name": f"C{n}"}, "after": {}}
        for n in range(212)
    ]
    card = world.destructive_card()
    preview = {"effect": "delete", "targets": targets, "total": 212, "reversible": False, "problem": ""}
    Approval.objects.filter(pk=card.pk).update(preview=preview)
    html = card_page(world, card)
    assert "show all 212" in html
    assert "delete 212 records" in html
    first, _, rest = html.partition("show all 212")
    assert "Company 4" in first
    assert "Company 5<" not in first
    assert "Company 211" in rest


def test_only_the_page_has_the_token_never_the_shared_fragment(world: World) -> None:
    card = world.card()
    assert TOKEN in card_page(world, card).split("data-card")[1]
    assert TOKEN not in text_of(world.client("approver"), f"/approvals/{card.pk}/card/")


def test_approving_with_a_plain_form_gives_a_grace(world: World) -> None:
    card = world.card()
    answer = post(world, card, "approve")
    assert answer.status_code == 302
    decided = Approval.objects.get(pk=card.pk)
    assert decided.status == ApprovalStatus.APPROVED
    assert decided.start_after is not None
    assert 2 < (decided.start_after - timezone.now()).total_seconds() <= 5.5
    assert "Undo" in card_page(world, card)


def test_denying_tells_preset_and_words(world: World) -> None:
    card = world.card()
    assert post(world, card, "deny", preset="Wrong target", reason="It is a customer.").status_code == 302
    assert Approval.objects.get(pk=card.pk).reason == "Wrong target. It is a customer."
    assert "It is a customer." in card_page(world, card, "viewer")


def test_a_decided_card_says_who_decided_with_the_right_status(world: World) -> None:
    card = world.card()
    post(world, card, "deny", "admin")
    answer = post(world, card, "approve")
    assert answer.status_code == 409
    assert "by <bdi" in answer.content.decode() or "by admin" in answer.content.decode()
    assert "data-action" not in answer.content.decode()


def test_another_digest_shows_the_card_as_it_is_now(world: World) -> None:
    card = world.card()
    answer = post(world, card, "approve", digest="0" * 64)
    assert answer.status_code == 412
    assert card.digest in answer.content.decode()
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


def test_a_destructive_card_wants_the_targets_name(world: World) -> None:
    card = world.destructive_card()
    assert "to confirm" in card_page(world, card)
    assert post(world, card, "approve").status_code == 422
    assert post(world, card, "approve", confirm="Acme").status_code == 422
    assert post(world, card, "approve", confirm="Acme Corp").status_code == 302


@pytest.mark.django_db(transaction=True)  # previews run in threads of their own
def test_editing_approves_nothing_and_shows_what_changed(world: World) -> None:
    card = world.card()
    answer = post(world, card, "edit", **{"param.changes.phone": "+1 555 0199", "param.changes.status": "pending"})
    assert answer.status_code == 302
    fresh = Approval.objects.get(tool_call=card.tool_call, status=ApprovalStatus.PENDING)
    assert fresh.pk != card.pk
    changed = section(card_page(world, fresh), "changed")
    assert "What changed since the earlier card" in changed
    assert re.findall(r"<dt>(.*?)</dt>", changed) == ["changes · phone", "changes · status"]
    assert "+1 555 0100" in changed
    assert "+1 555 0199" in changed
    assert ToolCall.objects.get(pk=card.tool_call_id).status == CallStatus.AWAITING_APPROVAL


def test_an_edit_that_is_wrong_keeps_what_was_typed_and_says_why_beside_it(world: World) -> None:
    card = world.card()
    answer = post(world, card, "edit", **{"param.changes.phone": "+1", "param.changes.score": "lots"})
    assert answer.status_code == 422
    field = input_of(answer.content.decode(), "param.changes.score")
    assert 'value="lots"' in field
    assert 'aria-invalid="true"' in field
    assert "&#x27;lots&#x27; is not a whole number." in field
    assert 'value="+1"' in input_of(answer.content.decode(), "param.changes.phone")
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


@pytest.mark.django_db(transaction=True)  # previews run in threads of their own
@pytest.mark.parametrize(
    ("name", "typed", "words"),
    [
        ("changes.status", "on fire", "It has to be &#x27;active&#x27;, &#x27;inactive&#x27; or &#x27;pending&#x27;."),
        ("changes.email", "nobody", "It is not an e-mail address."),
        ("record_id", "123456", "record"),
    ],
)
def test_what_the_tool_refuses_is_said_beside_its_input(world: World, name: str, typed: str, words: str) -> None:
    card = world.card()
    answer = post(world, card, "edit", **{f"param.{name}": typed})
    assert answer.status_code == 422
    problem = input_of(answer.content.decode(), f"param.{name}").split('class="problem"')[1]
    assert words in problem
    assert "parameter" not in problem


@pytest.mark.django_db(transaction=True)  # previews run in threads of their own
def test_an_edit_that_leaves_out_a_record_names_it(world: World) -> None:
    card = world.card(tool=DELETE, params={"record_ids": [str(record.pk) for record in world.records]})
    answer = post(world, card, "edit", **{"param.record_ids": f"{world.records[0].pk}\n{world.records[2].pk}"})
    assert answer.status_code == 302
    fresh = Approval.objects.get(tool_call=card.tool_call, status=ApprovalStatus.PENDING)
    changed = section(card_page(world, fresh), "changed")
    assert re.findall(r"<dt>(.*?)</dt>", changed) == ["record_ids", "no longer affected"]
    assert "Initech" in changed


@pytest.mark.django_db(transaction=True)  # previews run in threads of their own
def test_a_target_that_drifted_is_named_with_its_field(world: World) -> None:
    card = world.card()
    post(world, card, "approve")
    world.records[0].phone = "+1 555 7777"
    world.records[0].version += 1
    world.records[0].save()
    world.client("approver").post(f"/approvals/{card.pk}/undo/")
    fresh = Approval.objects.get(tool_call=card.tool_call, status=ApprovalStatus.PENDING)
    changed = section(card_page(world, fresh), "changed")
    assert re.findall(r"<dt>(.*?)</dt>", changed) == ["phone as it is now"]
    assert "+1 555 7777" in changed


def test_what_all_targets_share_is_said_once(world: World) -> None:
    ids = [str(record.pk) for record in world.records]
    card = world.card(tool="data.bulkUpdate", params={"record_ids": ids, "changes": {"status": "inactive"}})
    html = section(card_page(world, card), "effect")
    assert "The same for all 3" in html
    assert html.count("<dt>status</dt>") == 1
    assert all(record.name in html for record in world.records)


@pytest.mark.django_db(transaction=True)  # previews run in threads of their own
def test_undo_brings_a_new_card(world: World) -> None:
    card = world.card()
    post(world, card, "approve")
    assert world.client("approver").post(f"/approvals/{card.pk}/undo/").status_code == 302
    assert Approval.objects.filter(tool_call=card.tool_call, status=ApprovalStatus.PENDING).count() == 1


def test_an_unknown_outcome_is_settled_by_a_person(world: World) -> None:
    call = world.unknown_call()
    card = Approval.objects.get(tool_call=call)
    assert "It is not known whether this happened." in card_page(world, card)
    assert post(world, card, "resolve", outcome="succeeded", reason="").status_code == 422
    assert post(world, card, "resolve", outcome="succeeded", reason="I looked.").status_code == 302
    assert ToolCall.objects.get(pk=call.pk).status == CallStatus.SUCCEEDED


def test_the_forms_of_the_page_work_with_its_token_alone(world: World) -> None:
    card = world.card()
    client = nobody(needs_csrf=True)
    client.force_login(world.users["approver"])
    html = text_of(client, f"/approvals/{card.pk}/")
    form = html.split('class="approve"')[1].split("</form>")[0]
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]+)">', form))
    assert fields.keys() == {TOKEN, "digest"}
    assert client.post(f"/approvals/{card.pk}/approve/", fields).status_code == 302
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.APPROVED
