"""The Django app of this folder's models, which reads the events of runs."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "agents.webhooks"
    verbose_name = "Webhooks"

    def ready(self) -> None:
        from agents.readers.reading import READERS
        from agents.webhooks.outbox import READER

        READERS.append(READER)
