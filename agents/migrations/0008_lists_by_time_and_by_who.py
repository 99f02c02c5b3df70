import django.db.models.deletion
import django.db.models.functions.comparison
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0007_approvals_newest"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="apitoken",
            options={"ordering": ("-id",), "verbose_name": "API token"},
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="organization",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="audit_entries",
                to="agents.organization",
            ),
        ),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(
                models.F("organization"),
                django.db.models.functions.comparison.Coalesce("decided_at", "requested_at"),
                models.F("id"),
                condition=models.Q(("status", "pending"), _negated=True),
                name="approvals_by_end",
            ),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["organization", "actor", "seq"], name="audit_by_actor"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["organization", "action", "seq"], name="audit_by_action"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["organization", "at", "seq"], name="audit_by_time"),
        ),
    ]
