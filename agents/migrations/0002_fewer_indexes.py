import agents.models.tool_call
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0001_initial"),
    ]

    # Dropping a key's own index, Django drops partial unique indexes of the same column too: they are made anew.
    operations = [
        migrations.RemoveConstraint(
            model_name="approval",
            name="one_open_approval_per_call",
        ),
        migrations.RemoveConstraint(
            model_name="approval",
            name="one_consumed_approval_per_call",
        ),
        migrations.RemoveIndex(
            model_name="toolcall",
            name="calls_by_signature",
        ),
        migrations.AlterField(
            model_name="approval",
            name="run",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="approvals", to="agents.run"
            ),
        ),
        migrations.AlterField(
            model_name="approval",
            name="tool_call",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="approvals",
                to="agents.toolcall",
            ),
        ),
        migrations.AlterField(
            model_name="event",
            name="run",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="events", to="agents.run"
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="run",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="messages", to="agents.run"
            ),
        ),
        migrations.AlterField(
            model_name="pass",
            name="run",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="passes", to="agents.run"
            ),
        ),
        migrations.AlterField(
            model_name="toolcall",
            name="duplicate_of",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="duplicates",
                to="agents.toolcall",
            ),
        ),
        migrations.AlterField(
            model_name="toolcall",
            name="idempotency_key",
            field=models.CharField(default=agents.models.tool_call.new_idempotency_key, max_length=64),
        ),
        migrations.AlterField(
            model_name="toolcall",
            name="parent_call",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="child_calls",
                to="agents.toolcall",
            ),
        ),
        migrations.AlterField(
            model_name="toolcall",
            name="run",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="tool_calls", to="agents.run"
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("duplicate_of__isnull", False)), fields=["duplicate_of"], name="calls_doubled"
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("parent_call__isnull", False)), fields=["parent_call"], name="calls_of_calls"
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("level__in", ("write", "destructive"))),
                fields=["organization", "tool", "id"],
                name="calls_asking",
            ),
        ),
        migrations.AddConstraint(
            model_name="toolcall",
            constraint=models.UniqueConstraint(fields=("idempotency_key",), name="idempotency_key_once"),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status__in", ("pending", "approved"))),
                fields=("tool_call",),
                name="one_open_approval_per_call",
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status", "consumed")), fields=("tool_call",), name="one_consumed_approval_per_call"
            ),
        ),
    ]
