"""The Django app of this folder's models, which reads the events of runs, and sends to webhooks."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "agents.webhooks"
    verbose_name = "Webhooks"

    def ready(self) -> None:
        from agents.deliveries.outboxes import register
        from agents.readers.reading import READERS
        from agents.webhooks.outbox import READER
        from agents.webhooks.sending import WebhookOutbox

        READERS.append(READER)
        register(WebhookOutbox())
