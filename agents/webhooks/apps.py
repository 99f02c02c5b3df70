"""The Django app of this folder's models, which reads the events of runs, and sends to webhooks."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "agents.webhooks"
    verbose_name = "Webhooks"

    def ready(self) -> None:
        from agents.deliveries.outboxes import register
        from agents.runs.event_readers import READERS, EventReader
        from agents.webhooks.outbox import add_deliveries, select_webhooks
        from agents.webhooks.sending import WebhookOutbox

        READERS.append(EventReader(select_webhooks, add_deliveries))
        register(WebhookOutbox())
