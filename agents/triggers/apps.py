"""The Django app of this folder's models."""

from django.apps import AppConfig


class TriggersConfig(AppConfig):
    name = "agents.triggers"
    verbose_name = "Triggers"
