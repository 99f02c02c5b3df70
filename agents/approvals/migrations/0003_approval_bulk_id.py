"""Mark decisions in bulk."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0002_standing_grant")]

    operations = [migrations.AddField("approval", "bulk_id", models.UUIDField(null=True))]
