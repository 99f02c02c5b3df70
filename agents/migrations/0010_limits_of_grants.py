from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0009_ollama_and_model_settings"),
    ]

    operations = [
        migrations.AddField(
            model_name="grant",
            name="conditions",
            field=models.JSONField(default=list, help_text="Of tools.toolbox.Condition, as JSON."),
        ),
        migrations.AddField(
            model_name="grant",
            name="level",
            field=models.CharField(
                blank=True, help_text="A higher level than the tool's own; empty: its own.", max_length=11
            ),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(
                condition=models.Q(("level__in", ("", "read", "draft", "write", "destructive"))),
                name="grant_level_is_known",
            ),
        ),
    ]
