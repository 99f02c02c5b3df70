import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q


def key_without_index(related_name: str) -> models.ForeignKey:
    return models.ForeignKey(
        db_index=False,
        on_delete=django.db.models.deletion.CASCADE,
        related_name=related_name,
        to="agents.organization",
    )


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0003_cards_keep_their_params"),
    ]

    # Each takes the place of the key's own index, so that no row has one index more to write.
    operations = [
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["organization", "created_at"], name="runs_by_time"),
        ),
        migrations.AlterField(model_name="run", name="organization", field=key_without_index("runs")),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(fields=["organization", "created_at"], name="calls_by_time"),
        ),
        migrations.AlterField(model_name="toolcall", name="organization", field=key_without_index("+")),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(
                fields=["organization", "decided_at"],
                name="decisions_by_time",
                condition=Q(decided_at__isnull=False),
            ),
        ),
        migrations.AlterField(model_name="approval", name="organization", field=key_without_index("approvals")),
    ]
