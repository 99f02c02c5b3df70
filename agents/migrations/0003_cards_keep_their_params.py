from django.db import migrations, models

COPY = """
    UPDATE agents_approval SET
        level = (SELECT level FROM agents_toolcall WHERE agents_toolcall.id = agents_approval.tool_call_id),
        params = (SELECT params FROM agents_toolcall WHERE agents_toolcall.id = agents_approval.tool_call_id)
"""


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0002_fewer_indexes"),
    ]

    operations = [
        migrations.AddField(
            model_name="approval",
            name="level",
            field=models.CharField(default="", max_length=12),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="approval",
            name="params",
            field=models.JSONField(default=dict),
        ),
        migrations.RunSQL(COPY, migrations.RunSQL.noop),
    ]
