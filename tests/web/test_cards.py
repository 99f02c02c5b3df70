"""Cards show the effect of their calls, and plain forms decide them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.utils import timezone

from agents.runs.models import Approval, ApprovalStatus, CallStatus, EventType, Pass, Run, ToolCall
from tests.web.pages import read_page
from tests.web.run_events import add_events
from tests.world import DELETE, World, change, nobody, success
from tools.office.records.models import Record

pytestmark = pytest.mark.django_db

TOKEN = "csrfmiddlewaretoken"
ENDS = {"changed": 'class="facts"', "effect": 'class="why"'}


def card_page(world: World, card: Approval, username: str = "approver") -> str:
    return read_page(world.client(username), f"/approvals/{card.pk}/")


def section(html: str, name: str) -> str:
    """Return the part of the card with this class."""
    return html.split(f'<div class="{name}">')[1].split(ENDS[name], maxsplit=1)[0]


def list_names(html: str) -> list[str]:
    """List the names of the values in this part of a card."""
    return re.findall(r'<dt><bdi class="field-name">(.*?)</bdi></dt>', html)


def input_of(html: str, name: str) -> str:
    """Return the input with this name and the text below it."""
    return html.split(f'name="{name}"')[1].split("</label>", maxsplit=1)[0]


def post(
    world: World, card: Approval, action: str, username: str = "approver", **fields: Any
) -> Any:
    return world.client(username).post(
        f"/approvals/{card.pk}/{action}/", {"digest": card.digest, **fields}
    )


def test_a_card_shows_level_sentence_effect_and_reason(world: World) -> None:
    card = world.card()
    Pass.objects.create(
        run=card.run, number=1, response={}, text="Trust me: https://evil.example", messages_upto=1
    )
    html = card_page(world, card)
    for part in (
        "WRITE",
        "Creates or changes data",
        "+1 555 0100",
        "this changes data",
        "not verified",
        'Approve: update <strong class="chip"><bdi>Acme Corp</bdi></strong>',
    ):
        assert part in html
    assert "evil.example" not in html
    assert '<strong class="chip"><bdi>Acme Corp</bdi></strong>' in html


def test_a_missing_preview_is_stated(world: World) -> None:
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
    assert "No preview:" in html
    assert "tell what this affects" in html


def test_hidden_characters_of_a_record_are_visible(world: World) -> None:
    world.records[0].name = "Acme \u202eproC <b>"
    world.records[0].save()
    html = card_page(world, world.card())
    assert "⟦U+202E⟧" in html
    assert "\u202e" not in re.sub(r"<(input|textarea)[^>]*>[^<]*", "", html)
    assert "<b>" not in html.split('class="sentence"')[1].split("</div>")[0]


def test_a_task_with_many_lines_is_shown_on_one_line_with_its_hidden_characters(
    world: World,
) -> None:
    run = world.run()
    Run.objects.filter(pk=run.pk).update(task="Look up Acme,\r\n\n\t- then\u2028write \x1bto it")
    html = card_page(world, world.card(run))
    assert "Look up Acme, - then⟦U+2028⟧write ⟦U+001B⟧to it</q></a>" in re.sub(
        r"</?span[^>]*>", "", html
    )


def test_a_long_value_is_folded_with_its_length(world: World) -> None:
    html = card_page(
        world,
        world.card(params=change(world.records[0], "9" * 30) | {"changes": {"notes": "n" * 3000}}),
    )
    assert "3,000 characters" in html


def test_the_first_five_targets_are_shown_and_the_rest_is_folded(world: World) -> None:
    targets = [
        {
            "id": str(n),
            "label": f"Company {n}",
            "version": 1,
            "before": {"name": f"C{n}"},
            "after": {},
        }
        for n in range(212)
    ]
    card = world.destructive_card()
    preview = {
        "effect": "delete",
        "targets": targets,
        "total": 212,
        "reversible": False,
        "problem": "",
    }
    Approval.objects.filter(pk=card.pk).update(preview=preview)
    html = card_page(world, card)
    assert "Show all 212" in html
    assert "delete 212 records" in html
    first, _, rest = html.partition("Show all 212")
    assert "Company 4" in first
    assert "Company 5<" not in first
    assert "Company 211" in rest


def test_the_page_has_the_csrf_token_but_the_fragment_does_not(world: World) -> None:
    card = world.card()
    assert TOKEN in card_page(world, card).split("data-card")[1]
    assert TOKEN not in read_page(world.client("approver"), f"/approvals/{card.pk}/card/")


def test_approving_with_a_plain_form_starts_a_grace_period(world: World) -> None:
    card = world.card()
    response = post(world, card, "approve")
    assert response.status_code == 302
    decided = Approval.objects.get(pk=card.pk)
    assert decided.status == ApprovalStatus.APPROVED
    assert decided.start_after is not None
    assert 2 < (decided.start_after - timezone.now()).total_seconds() <= 5.5
    assert "Undo" in card_page(world, card)


def test_a_denial_joins_the_preset_and_the_typed_reason(world: World) -> None:
    card = world.card()
    assert (
        post(world, card, "deny", preset="Wrong target", reason="It is a customer.").status_code
        == 302
    )
    assert Approval.objects.get(pk=card.pk).reason == "Wrong target. It is a customer."
    assert "It is a customer." in card_page(world, card, "viewer")


def test_deciding_a_decided_card_returns_409_and_names_the_decider(world: World) -> None:
    card = world.card()
    post(world, card, "deny", "admin")
    response = post(world, card, "approve")
    assert response.status_code == 409
    assert "by <bdi" in response.content.decode() or "by admin" in response.content.decode()
    assert "data-action" not in response.content.decode()


def test_a_wrong_digest_returns_412_with_the_current_card(world: World) -> None:
    card = world.card()
    response = post(world, card, "approve", digest="0" * 64)
    assert response.status_code == 412
    assert card.digest in response.content.decode()
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


def test_a_destructive_card_requires_the_name_of_its_target(world: World) -> None:
    card = world.destructive_card()
    assert "to confirm" in card_page(world, card)
    assert post(world, card, "approve").status_code == 422
    assert post(world, card, "approve", confirm="Acme").status_code == 422
    assert post(world, card, "approve", confirm="Acme Corp").status_code == 302


@pytest.mark.django_db(transaction=True)  # previews run in separate threads
def test_editing_a_card_does_not_approve_it_and_shows_the_changes(world: World) -> None:
    card = world.card()
    response = post(
        world,
        card,
        "edit",
        **{"param.changes.phone": "+1 555 0199", "param.changes.status": "pending"},
    )
    assert response.status_code == 302
    fresh = Approval.objects.get(tool_call=card.tool_call, status=ApprovalStatus.PENDING)
    assert fresh.pk != card.pk
    changed = section(card_page(world, fresh), "changed")
    assert "What changed since the earlier card" in changed
    assert list_names(changed) == ["changes · phone", "changes · status"]
    plain = re.sub("</?(?:del|ins)>", "", changed)
    assert "+1 555 0100" in plain
    assert "+1 555 0199" in plain
    assert ToolCall.objects.get(pk=card.tool_call_id).status == CallStatus.AWAITING_APPROVAL


def test_a_refused_edit_keeps_the_typed_texts_and_shows_each_problem_beside_its_input(
    world: World,
) -> None:
    card = world.card()
    response = post(
        world, card, "edit", **{"param.changes.phone": "+1", "param.changes.score": "lots"}
    )
    assert response.status_code == 422
    field = input_of(response.content.decode(), "param.changes.score")
    assert 'value="lots"' in field
    assert 'aria-invalid="true"' in field
    assert "&#x27;lots&#x27; is not a whole number." in field
    assert 'value="+1"' in input_of(response.content.decode(), "param.changes.phone")
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


@pytest.mark.django_db(transaction=True)  # previews run in separate threads
@pytest.mark.parametrize(
    ("name", "typed", "words"),
    [
        (
            "changes.status",
            "on fire",
            "It must be &#x27;active&#x27;, &#x27;inactive&#x27; or &#x27;pending&#x27;.",
        ),
        ("changes.email", "nobody", "It is not an email address."),
        ("record_id", "123456", "record"),
    ],
)
def test_a_tools_error_is_shown_beside_the_input_that_caused_it(
    world: World, name: str, typed: str, words: str
) -> None:
    card = world.card()
    response = post(world, card, "edit", **{f"param.{name}": typed})
    assert response.status_code == 422
    problem = input_of(response.content.decode(), f"param.{name}").split('class="problem"')[1]
    assert words in problem
    assert "parameter" not in problem


@pytest.mark.django_db(transaction=True)  # previews run in separate threads
def test_an_edit_that_removes_a_record_names_it(world: World) -> None:
    card = world.card(
        tool=DELETE, params={"record_ids": [str(record.pk) for record in world.records]}
    )
    response = post(
        world, card, "edit", **{"param.record_ids": f"{world.records[0].pk}\n{world.records[2].pk}"}
    )
    assert response.status_code == 302
    fresh = Approval.objects.get(tool_call=card.tool_call, status=ApprovalStatus.PENDING)
    changed = section(card_page(world, fresh), "changed")
    assert list_names(changed) == ["no longer affected", "record_ids"]
    assert "Initech" in changed


@pytest.mark.django_db(transaction=True)  # previews run in separate threads
def test_a_changed_target_is_shown_with_the_field_that_changed(world: World) -> None:
    card = world.card()
    post(world, card, "approve")
    world.records[0].phone = "+1 555 7777"
    world.records[0].version += 1
    world.records[0].save()
    world.client("approver").post(f"/approvals/{card.pk}/undo/")
    fresh = Approval.objects.get(tool_call=card.tool_call, status=ApprovalStatus.PENDING)
    changed = section(card_page(world, fresh), "changed")
    assert list_names(changed) == ["phone (current value)"]
    assert "+1 555 7777" in changed


def test_changes_that_all_targets_share_are_shown_once(world: World) -> None:
    ids = [str(record.pk) for record in world.records]
    card = world.card(
        tool="data.bulkUpdate", params={"record_ids": ids, "changes": {"status": "inactive"}}
    )
    html = section(card_page(world, card), "effect")
    assert "The same for all 3" in html
    assert list_names(html).count("status") == 1
    assert all(record.name in html for record in world.records)


def test_an_unknown_outcome_is_settled_by_a_person(world: World) -> None:
    call = world.unknown_call()
    card = Approval.objects.get(tool_call=call)
    assert "know whether this happened." in card_page(world, card)
    assert post(world, card, "resolve", outcome="succeeded", reason="").status_code == 422
    assert post(world, card, "resolve", outcome="succeeded", reason="I looked.").status_code == 302
    assert ToolCall.objects.get(pk=call.pk).status == CallStatus.SUCCEEDED


def test_a_settled_outcome_is_shown_with_its_reason(world: World) -> None:
    card = Approval.objects.get(tool_call=world.unknown_call())
    refused = post(world, card, "resolve", outcome="succeeded", reason="")
    assert f'id="card-{card.pk}"' in refused.content.decode(), "the card is there to try again"
    post(world, card, "resolve", outcome="succeeded", reason="I looked.")
    html = card_page(world, card)
    assert "<b>Resolved</b>" in html
    assert "approver: I looked." in html
    assert "Cancelled" not in html


class TestTheTwoPersonRule:
    @pytest.fixture
    def card(self, world: World) -> Approval:
        """Create a card in a run that the approver started."""
        world.acme.four_eyes = True
        world.acme.save()
        card = world.card()
        Run.objects.filter(pk=card.run_id).update(created_by=world.users["approver"])
        return Approval.objects.get(pk=card.pk)

    @pytest.mark.parametrize(
        "path", ["/approvals/{card}/", "/approvals/{card}/card/", "/approvals/", "/runs/{run}/"]
    )
    def test_is_explained_on_the_card_on_every_page(
        self, world: World, card: Approval, path: str
    ) -> None:
        requested = {"call_id": str(card.tool_call_id), "approval_id": str(card.pk)}
        add_events(card.run, (EventType.APPROVAL_REQUESTED, requested))
        address = path.format(card=card.pk, run=card.run_id)
        mine, theirs = (read_page(world.client(name), address) for name in ("approver", "admin"))
        for html in (mine, theirs):
            assert (
                "<b>Two-person rule:</b> approver started this run, so someone else must approve."
                in html
            )
            assert 'data-barred-users="approver"' in html
        assert 'data-barred-users="approver" data-is-barred' in mine
        assert "data-is-barred" not in theirs

    def test_is_not_mentioned_if_it_is_off(self, world: World, card: Approval) -> None:
        world.acme.four_eyes = False
        world.acme.save()
        html = card_page(world, card)
        assert "Two-person rule" not in html
        assert "data-barred-users" not in html


class TestTheStateOfTheCall:
    def decided(self, world: World, status: CallStatus, **result: Any) -> str:
        card = world.card()
        now = timezone.now()
        Approval.objects.filter(pk=card.pk).update(
            status=ApprovalStatus.CONSUMED,
            decided_by=world.users["approver"],
            decided_at=now,
            start_after=now,
            consumed_at=now,
        )
        ends = (
            {"finished_at": now, "result": success(None, **result), "content": "x"}
            if result
            else {}
        )
        executed = {"exec_epoch": 1, "deadline_at": now, "started_at": now, "attempts": 1}
        ToolCall.objects.filter(pk=card.tool_call_id).update(status=status, **executed, **ends)
        html = card_page(world, card)
        assert f'href="/runs/{card.run_id}/calls/{card.tool_call_id}/"' in html
        return html.split("data-report>")[1].split("<a ")[0]

    def test_is_shown_while_it_runs(self, world: World) -> None:
        assert "Running." in self.decided(world, CallStatus.EXECUTING)

    def test_is_shown_with_its_summary_after_success(self, world: World) -> None:
        told = self.decided(world, CallStatus.SUCCEEDED, summary="Updated <1> record")
        assert 'Succeeded: <q class="quoted">Updated &lt;1&gt; record</q>' in told

    def test_is_shown_with_its_error_after_failure(self, world: World) -> None:
        error = {"code": "NOT_FOUND", "message": "There is no record 7."}
        told = self.decided(world, CallStatus.FAILED, success=False, summary="", error=error)
        assert 'Failed: <q class="quoted">There is no record 7.</q>' in told

    def test_is_shown_if_the_outcome_is_unknown(self, world: World) -> None:
        assert "know whether this happened." in self.decided(world, CallStatus.OUTCOME_UNKNOWN)


@pytest.mark.django_db(transaction=True)  # previews run in separate threads
def test_a_replaced_card_links_to_its_successor(world: World) -> None:
    card = world.card()
    post(world, card, "approve")
    world.client("approver").post(f"/approvals/{card.pk}/undo/")
    fresh = Approval.objects.get(tool_call=card.tool_call, status=ApprovalStatus.PENDING)
    link = f'<a href="/approvals/{fresh.pk}/">Replaced by card {fresh.pk}</a>: '
    assert f"{link}waiting for a decision." in card_page(world, card)
    post(world, fresh, "deny")
    assert f"{link}denied." in card_page(world, card)


@pytest.mark.django_db(transaction=True)  # previews run in separate threads
def test_a_card_created_by_an_undo_says_if_its_call_is_no_longer_possible(world: World) -> None:
    card = world.card()
    post(world, card, "approve")
    Record.objects.filter(pk=world.records[0].pk).delete()
    world.client("approver").post(f"/approvals/{card.pk}/undo/")
    fresh = Approval.objects.get(tool_call=card.tool_call, status=ApprovalStatus.PENDING)
    html = card_page(world, fresh)
    assert list_names(section(html, "changed")) == ["effect"]
    assert "no longer possible" in section(html, "changed")
    assert "There is no record" in section(html, "effect")
    assert "No longer possible" in section(html, "effect")
    facts = html.split('class="facts"')[1].split("</dl>")[0]
    assert "Affected" not in facts
    assert "not known" not in facts


def test_the_pages_form_approves_the_card_with_its_csrf_token(world: World) -> None:
    card = world.card()
    client = nobody(needs_csrf=True)
    client.force_login(world.users["approver"])
    html = read_page(client, f"/approvals/{card.pk}/")
    form = html.split('class="approve"')[1].split("</form>")[0]
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]+)">', form))
    assert fields.keys() == {TOKEN, "digest"}
    assert client.post(f"/approvals/{card.pk}/approve/", fields).status_code == 302
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.APPROVED
