import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0008_lists_by_time_and_by_who"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="modelprovider",
            name="provider_kind_is_known",
        ),
        migrations.AddField(
            model_name="employee",
            name="extra_body",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text='For experts: a JSON object that is merged into every request to the model, e.g. {"top_p": 0.9}, or for Ollama {"think": false, "keep_alive": "30m"}.',
            ),
        ),
        migrations.AddField(
            model_name="employee",
            name="max_tokens",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="The longest answer, in tokens; what the model thinks may count. Empty: as its server does.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1, "Allow at least 1 token, or leave this empty.")
                ],
            ),
        ),
        migrations.AddField(
            model_name="employee",
            name="num_ctx",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Only for Ollama: how many tokens it lets the model see at once; the more, the more memory it takes. Empty: the context in tokens, else 16,384. Older results are shortened before it is full.",
                null=True,
                validators=[django.core.validators.MinValueValidator(256, "A context has at least 256 tokens.")],
            ),
        ),
        migrations.AddField(
            model_name="employee",
            name="temperature",
            field=models.FloatField(
                blank=True,
                help_text="How freely the model chooses its words, 0 to 2. Empty: as its server does. Some models refuse it.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(0, "A temperature is a number from 0 to 2."),
                    django.core.validators.MaxValueValidator(2, "A temperature is a number from 0 to 2."),
                ],
            ),
        ),
        migrations.AlterField(
            model_name="modelprovider",
            name="base_url",
            field=models.CharField(
                blank=True,
                help_text="Where the model is, e.g. http://localhost:8080/v1, or for Ollama http://localhost:11434. Empty: the provider's own address.",
                max_length=300,
                validators=[
                    django.core.validators.RegexValidator(
                        "^https?://[^\\s/?#]+(/[^\\s?#]*)?$", "an address such as http://localhost:8080/v1"
                    )
                ],
            ),
        ),
        migrations.AlterField(
            model_name="modelprovider",
            name="kind",
            field=models.CharField(
                choices=[("openai", "OpenAI or compatible"), ("ollama", "Ollama"), ("scripted", "Script (no model)")],
                default="openai",
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="employee",
            constraint=models.CheckConstraint(
                condition=models.Q(("temperature__gte", 0), ("temperature__lte", 2)), name="employee_temperature_0_to_2"
            ),
        ),
        migrations.AddConstraint(
            model_name="modelprovider",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["openai", "ollama", "scripted"])), name="provider_kind_is_known"
            ),
        ),
    ]
