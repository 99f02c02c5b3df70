from django.db import migrations

from agents.readers.beginnings import begin_at_end


class Migration(migrations.Migration):
    dependencies = [
        ("notices", "0005_lost_address"),
        ("readers", "0001_initial"),
        ("runs", "0011_runs_unfinished"),
    ]

    operations = [begin_at_end("notices", "runs", "Event")]
