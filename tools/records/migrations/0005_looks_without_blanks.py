"""Give existing records a look in which blanks and punctuation do not count."""

from importlib import import_module

from django.db import migrations

fill_looks = import_module("tools.records.migrations.0004_looks_of_names").fill_looks


class Migration(migrations.Migration):
    dependencies = [("records", "0004_looks_of_names")]

    operations = [migrations.RunPython(fill_looks, migrations.RunPython.noop)]
