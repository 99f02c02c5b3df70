from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0006_exit_reason_words"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(fields=["organization", "-id"], name="approvals_newest"),
        ),
    ]
