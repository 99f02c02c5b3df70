"""The Django app of this folder's models, which keeps a stop until restored limits are
confirmed."""

from django.apps import AppConfig


class RestoresConfig(AppConfig):
    name = "agents.restores"
    verbose_name = "Restored limits"

    def ready(self) -> None:
        from agents.restores.confirming import refuse_unconfirmed
        from agents.runs.stops import RELEASE_GUARDS

        RELEASE_GUARDS.append(refuse_unconfirmed)
