"""The configuration of the Django app `connections`."""

from django.apps import AppConfig


class ConnectionsConfig(AppConfig):
    name = "tools.connections"
    label = "connections"
    verbose_name = "Connections"
    default_auto_field = "django.db.models.BigAutoField"
