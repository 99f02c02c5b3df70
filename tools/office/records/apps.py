"""Django app for an organization's business records."""

from django.apps import AppConfig


class RecordsConfig(AppConfig):
    name = "tools.office.records"
    label = "records"
    verbose_name = "Business records"
    default_auto_field = "django.db.models.BigAutoField"
