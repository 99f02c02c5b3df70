"""The Django app of restored limits, which prevents lifting the stop until they are confirmed."""

from django.apps import AppConfig


class RestoresConfig(AppConfig):
    name = "agents.restores"
    verbose_name = "Restored limits"

    def ready(self) -> None:
        from agents.restores.confirming import refuse_unconfirmed
        from agents.runs.stops import RELEASE_GUARDS

        RELEASE_GUARDS.append(refuse_unconfirmed)
