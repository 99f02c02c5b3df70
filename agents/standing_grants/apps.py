"""The Django app of this folder's models, which approves cards at the gate."""

from django.apps import AppConfig


class StandingGrantsConfig(AppConfig):
    name = "agents.standing_grants"
    verbose_name = "Standing grants"

    def ready(self) -> None:
        from agents.runs.engine import preapprover
        from agents.standing_grants import preapprovals

        preapprover.register(preapprovals)
