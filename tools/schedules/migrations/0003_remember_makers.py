"""Give existing schedules their creator."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def remember_makers(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    """Take the creator from the audit; a schedule that an employee created has only the person it works for."""
    users = apps.get_model("auth", "User").objects
    entries = apps.get_model("agents", "AuditEntry").objects.filter(action="schedule_created")
    for schedule in apps.get_model("schedules", "Schedule").objects.all():
        made = entries.filter(organization_id=schedule.organization_id, subject=f"schedule:{schedule.pk}").first()
        maker = users.filter(username=made.actor.removeprefix("user:")).first() if made else None
        schedule.made_by_id = maker.pk if maker else schedule.created_by_id
        schedule.save(update_fields=["made_by"])


class Migration(migrations.Migration):
    dependencies = [("schedules", "0002_made_by")]

    operations = [migrations.RunPython(remember_makers, migrations.RunPython.noop)]
