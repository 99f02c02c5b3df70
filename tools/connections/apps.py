"""Django app for an organization's tool sources and allowed hosts."""

from django.apps import AppConfig


class ConnectionsConfig(AppConfig):
    name = "tools.connections"
    label = "connections"
    verbose_name = "Connections"
    default_auto_field = "django.db.models.BigAutoField"
