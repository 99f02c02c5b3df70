"""Make a restored backup safe to start, because nobody knows what happened after it was taken.

Everything stays stopped until an admin confirms the limits of people and employees and lifts the
stop. Rights that take effect without a new decision are ended, approved calls that had not started
need approval again, unsent notices are dropped, and open cards carry a warning.
"""

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models.functions import Now

from agents.accounts import audit, installation
from agents.accounts.models import ApiToken, Invitation, Organization, PasswordReset
from agents.approval_rules.models import Deputy
from agents.approvals.current_calls import replace_unstarted_card
from agents.approvals.models import Claim
from agents.gateway.models import AgentKey, SigningKey
from agents.notices.deliveries import drop_all
from agents.platform.models import Installation
from agents.readers.reading import skip_unread
from agents.restores.lines import write_lines
from agents.runs import schedules, stops
from agents.runs.engine.recovery import settle_lost_call
from agents.runs.engine.transaction import run_transaction
from agents.runs.models import Approval, ApprovalStatus, CallStatus, Run, RunStatus, ToolCall, Vote
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.preapprovals import IN_FORCE, tell_end
from agents.triggers.models import Trigger
from agents.webhooks.changes import switch_all_off

STOPPED_BY = "Restoring a backup"
RESTORED = "a backup was restored"
RESTORED_SENTENCE = "A backup was restored."


def stop_everything(*, is_repeated: bool = False) -> None:
    """Stop everything in one transaction of plain statements, which a restore can commit together
    with the data.

    Rights that take effect without a new decision are ended too (gadget_site/backup/rights.py):
    otherwise, a token, standing grant or deputy revoked since the backup would work again.

    Args:
        is_repeated: True if an earlier attempt at this restore already stopped everything; unsent
            notices are then from that attempt, and are kept.
    """
    with transaction.atomic():
        Installation.objects.update(folder_mark=installation.UNFINISHED_RESTORE)
        Organization.objects.filter(stopped_at=None).update(stopped_at=Now(), stopped_by=STOPPED_BY)
        Organization.objects.update(restored_at=Now())
        Approval.objects.filter(status=ApprovalStatus.APPROVED).update(valid_until=Now())
        # Superusers without an organization lose their passwords: no admin can confirm their
        # accounts.
        if Organization.objects.exists():
            User.objects.filter(is_superuser=True, memberships=None).update(
                password=make_password(None)
            )
        Session.objects.all().delete()
        ApiToken.objects.filter(revoked_at=None).update(revoked_at=Now())
        Invitation.objects.filter(accepted_at=None, revoked_at=None).update(revoked_at=Now())
        PasswordReset.objects.filter(used_at=None, revoked_at=None).update(revoked_at=Now())
        AgentKey.objects.filter(revoked_at=None).update(revoked_at=Now(), revoked_by=STOPPED_BY)
        SigningKey.objects.filter(is_current=True).update(is_current=False, retired_at=Now())
        grants = list(StandingGrant.objects.filter(IN_FORCE))
        StandingGrant.objects.filter(revoked_at=None, ended_at=None).update(
            ended_at=Now(), ended_because=RESTORED_SENTENCE
        )
        Deputy.objects.filter(starts_at__gte=Now()).delete()
        Deputy.objects.filter(ends_at__gt=Now()).update(ends_at=Now())
        Claim.objects.all().delete()
        Vote.objects.filter(withdrawn_at=None, approval__status=ApprovalStatus.PENDING).update(
            withdrawn_at=Now()
        )
        Trigger.objects.filter(is_active=True).update(is_active=False)
        if not is_repeated:
            skip_unread()
            drop_all(RESTORED)
        switch_all_off(RESTORED)
        for grant in grants:
            tell_end(grant, RESTORED_SENTENCE, grant.made_by_id)


def settle(made_at: str = "", *, has_lines: bool = False) -> dict[str, int]:
    """Stop everything, and settle runs, calls, cards and schedules so that people can continue.

    Can be run again after an interruption; notices written by the earlier attempt are kept. Return
    the number of changes by kind, such as `runs` and `schedules_paused`.

    Args:
        made_at: the time of the backup, if known.
        has_lines: True if the restore already wrote, together with the data, the limits that must
            be confirmed.
    """
    folder_id = Installation.objects.values_list("folder_mark", flat=True).first()
    is_repeated = folder_id == installation.UNFINISHED_RESTORE
    # Use one transaction, so that a repeated attempt can rely on the limits being written.
    with transaction.atomic():
        stop_everything(is_repeated=is_repeated)
        if not has_lines and not is_repeated:
            write_lines()
    counts = recover_runs()
    counts["schedules_paused"] = schedules.pause_after_restore(RESTORED_SENTENCE)
    for organization in Organization.objects.order_by("pk"):
        with transaction.atomic():
            payload = {"backup_made_at": made_at} if made_at else {}
            entry = audit.NewEntry(
                "gadget", "backup_restored", f"organization:{organization.pk}", payload
            )
            audit.append(organization.pk, [entry])
        stops.apply_to_all(organization.pk)
    if is_repeated:
        installation.adopt_folder()
    else:
        Installation.objects.update(folder_mark=folder_id or "")
    return counts


def recover_runs() -> dict[str, int]:
    """Settle the runs that were in progress at the time of the backup, because nobody knows what
    happened to them later.

    Approvals whose call has not started are replaced by new cards, executing calls are settled like
    calls of a lost worker, and running runs are put back in the queue. Return the number of runs,
    replaced approvals and settled calls: {"runs", "asked_again", "unsettled"}.
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
        counts["asked_again"] += replace_unstarted_card(
            pk, "The approval was given before a backup was restored."
        )
    return counts
