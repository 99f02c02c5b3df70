"""The Django app of triggers, which registers the origins of their runs."""

from django.apps import AppConfig


class TriggersConfig(AppConfig):
    name = "agents.triggers"
    verbose_name = "Triggers"

    def ready(self) -> None:
        from agents.runs.models import Origin
        from agents.runs.origins import ORIGINS, RunOrigin
        from agents.triggers.origin import load_acts, load_texts

        ORIGINS[Origin.TRIGGER] = RunOrigin(load_acts, load_texts)
