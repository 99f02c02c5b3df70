"""The Django app for figures."""

from django.apps import AppConfig


class InsightConfig(AppConfig):
    name = "agents.insight"
    verbose_name = "Figures"
