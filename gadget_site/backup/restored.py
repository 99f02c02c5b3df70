"""Make a restored backup safe to start: nobody can know what happened since it was taken.

Everything stays stopped until an admin lifts the stop. Approved calls that had not started are asked again, sessions
and tokens end, triggers and webhooks are switched off, unsent notices are dropped, and open cards carry a warning.
"""

from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models.functions import Now

from agents.accounts import audit
from agents.accounts.models import ApiToken, Invitation, Organization, PasswordReset
from agents.approvals.models import Approval, ApprovalStatus
from agents.approvals.unstarted_cards import replace_unstarted_card
from agents.gateway.models import AgentKey
from agents.notices.deliveries import drop_all
from agents.platform import identity
from agents.platform.models import Installation
from agents.runs import schedules, stops
from agents.runs.engine.recovery import settle_lost_call
from agents.runs.engine.transaction import run_transaction
from agents.runs.models import CallStatus, Run, RunStatus, ToolCall
from agents.triggers.models import Trigger
from agents.webhooks.changes import switch_all_off

STOPPED_BY = "Restoring a backup"
RESTORED = "a backup was restored"


def stop_everything() -> None:
    """Stop everything in one transaction of plain statements, so that a restore can commit it with the data.

    Sessions, API tokens and open links end too: those revoked since the backup would work again.
    """
    with transaction.atomic():
        Installation.objects.update(folder_mark=identity.UNFINISHED_RESTORE)
        Organization.objects.filter(stopped_at=None).update(stopped_at=Now(), stopped_by=STOPPED_BY)
        Organization.objects.update(restored_at=Now())
        Approval.objects.filter(status=ApprovalStatus.APPROVED).update(valid_until=Now())
        Session.objects.all().delete()
        ApiToken.objects.filter(revoked_at=None).update(revoked_at=Now())
        Invitation.objects.filter(accepted_at=None, revoked_at=None).update(revoked_at=Now())
        PasswordReset.objects.filter(used_at=None, revoked_at=None).update(revoked_at=Now())
        AgentKey.objects.filter(revoked_at=None).update(revoked_at=Now(), revoked_by=STOPPED_BY)
        Trigger.objects.filter(is_active=True).update(is_active=False)
        drop_all(RESTORED)
        switch_all_off(RESTORED)


def settle(made_at: str = "") -> dict[str, int]:
    """Stop everything, and settle runs, calls, cards and schedules so that people can continue.

    May be repeated. Return the number of each that changed.

    Args:
        made_at: the time of the backup, if known.
    """
    mark = Installation.objects.values_list("folder_mark", flat=True).first()
    stop_everything()
    counts = recover_runs()
    counts["schedules_moved_on"] = schedules.skip_after_restore()
    for organization in Organization.objects.order_by("pk"):
        with transaction.atomic():
            payload = {"backup_made_at": made_at} if made_at else {}
            entry = audit.NewEntry("gadget", "backup_restored", f"organization:{organization.pk}", payload)
            audit.append(organization.pk, [entry])
        stops.apply_to_all(organization.pk)
    if mark == identity.UNFINISHED_RESTORE:
        identity.adopt_folder()
    else:
        Installation.objects.update(folder_mark=mark or "")
    return counts


def recover_runs() -> dict[str, int]:
    """Settle runs that were in progress at the time of the backup: nobody can know what happened since.

    Approvals whose call has not started are asked again, executing calls are settled as after a lost worker, and
    leases are dropped. Return the number of each: {"runs", "asked_again", "unsettled"}.
    """
    counts = {"runs": 0, "asked_again": 0, "unsettled": 0}
    for pk in Run.objects.filter(status=RunStatus.RUNNING).values_list("pk", flat=True):
        with run_transaction(pk) as tx:
            tx.requeue()
        counts["runs"] += 1
    for call in ToolCall.objects.filter(status=CallStatus.EXECUTING).order_by("pk"):
        with run_transaction(call.run_id) as tx:
            settle_lost_call(tx, call, may_repeat=True)
        counts["unsettled"] += 1
    for pk in Approval.objects.filter(status=ApprovalStatus.APPROVED).values_list("pk", flat=True):
        counts["asked_again"] += replace_unstarted_card(pk, "The approval was given before a backup was restored.")
    return counts
