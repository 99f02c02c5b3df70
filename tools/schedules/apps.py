"""Django app for schedules."""

from django.apps import AppConfig


class SchedulesConfig(AppConfig):
    name = "tools.schedules"
    label = "schedules"
    verbose_name = "Schedules"
    default_auto_field = "django.db.models.BigAutoField"
