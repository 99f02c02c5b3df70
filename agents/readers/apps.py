"""The Django app of this folder's model."""

from django.apps import AppConfig


class ReadersConfig(AppConfig):
    name = "agents.readers"
    verbose_name = "Readers"
