from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0005_invitations"),
    ]

    operations = [
        migrations.AlterField(
            model_name="run",
            name="exit_reason",
            field=models.CharField(
                blank=True,
                choices=[
                    ("final_answer", "Answered"),
                    ("all_tools_duplicate", "Asked only for what it had already done"),
                    ("max_passes", "Used up its passes"),
                    ("cancelled", "Cancelled"),
                    ("denied_repeatedly", "Denied repeatedly"),
                    ("budget_exhausted", "Budget used up"),
                    ("provider_error", "The model did not answer"),
                    ("deadline", "Took too long"),
                    ("crash_loop", "Its worker died again and again"),
                    ("internal_error", "Internal error"),
                ],
                max_length=24,
            ),
        ),
    ]
