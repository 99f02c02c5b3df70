"""The Django app of standing grants, which registers them as the preapprover."""

from django.apps import AppConfig


class StandingGrantsConfig(AppConfig):
    name = "agents.standing_grants"
    verbose_name = "Standing grants"

    def ready(self) -> None:
        from agents.runs.engine import preapprover
        from agents.standing_grants import preapprovals

        preapprover.register(preapprovals)
