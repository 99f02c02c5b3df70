from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0002_after")]

    operations = [
        migrations.AddField(
            model_name="approval",
            name="shown_marks",
            field=models.JSONField(null=True),
        ),
    ]
