"""The Django app of this folder's models."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "agents.runs"
    verbose_name = "Runs"
