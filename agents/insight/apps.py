"""The Django app for figures."""

from django.apps import AppConfig


class InsightConfig(AppConfig):
    name = "agents.insight"
    verbose_name = "Figures"

    def ready(self) -> None:
        from agents.insight.counting import CURSORS
        from agents.readers import reading

        reading.OWN_CURSORS.extend(CURSORS)
