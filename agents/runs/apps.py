"""The Django app of runs."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "agents.runs"
    verbose_name = "Runs"
