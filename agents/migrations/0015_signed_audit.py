"""Sign the audit. Earlier entries are signed as they are, and a permanent entry says so."""

from datetime import UTC

from django.db import migrations, models
from django.db.models.functions import Now

from agents import audit, signatures
from tools.contract import fingerprint

PART = 1000


def sign_what_is_there(apps, schema_editor):
    """Sign every entry; a last entry records how many there were and which did not match their hashes."""
    head_model = apps.get_model("agents", "AuditHead")
    entry_model = apps.get_model("agents", "AuditEntry")
    for head in head_model.objects.exclude(seq=0).annotate(now=Now()):
        entries = entry_model.objects.filter(organization_id=head.organization_id).order_by("seq")
        plain, signed, misfits, last = "", "", 0, 0
        while part := list(entries.filter(seq__gt=last)[:PART]):
            for row in part:
                last += 1
                misfits += row.seq != last or row.previous_hash != plain or row.hash != unsigned_hash(row)
                plain, last = row.hash, row.seq
                signed = sign(row, signed)
            entry_model.objects.bulk_update(part, ["previous_hash", "hash", "key_id"])
        mark = entry_model(
            organization_id=head.organization_id,
            seq=last + 1,
            actor="gadget",
            action=audit.SIGNED_LATER,
            subject=f"organization:{head.organization_id}",
            payload={"entries": last, "entries_that_did_not_fit": misfits, "head_before": head.hash},
            at=head.now,
        )
        sign(mark, signed)
        mark.save(force_insert=True)
        head_model.objects.filter(pk=head.pk).update(seq=mark.seq, hash=mark.hash)


def sign(row, previous):
    row.previous_hash, row.key_id = previous, signatures.current_key_id()
    row.hash = audit.sign_entry(row)
    return row.hash


def unsigned_hash(row):
    """The plain hash that entries had before."""
    fields = ("seq", "actor", "action", "subject", "payload")
    return fingerprint(
        {
            "organization": row.organization_id,
            **{name: getattr(row, name) for name in fields},
            "previous": row.previous_hash,
            "at": row.at.astimezone(UTC).isoformat(timespec="microseconds"),
        }
    )


class Migration(migrations.Migration):
    dependencies = [("agents", "0014_tools_version")]

    operations = [
        migrations.AddField(
            model_name="auditentry",
            name="key_id",
            field=models.CharField(blank=True, default="", max_length=8),
        ),
        migrations.RunPython(sign_what_is_there, migrations.RunPython.noop),
    ]
