"""The Django app of this folder's models."""

from django.apps import AppConfig


class InsightConfig(AppConfig):
    name = "agents.insight"
    verbose_name = "Figures"
