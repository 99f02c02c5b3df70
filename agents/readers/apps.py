"""The Django app of readers and their cursors."""

from django.apps import AppConfig


class ReadersConfig(AppConfig):
    name = "agents.readers"
    verbose_name = "Readers"
