"""The Django app of webhooks, which registers their readers and their outbox."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "agents.webhooks"
    verbose_name = "Webhooks"

    def ready(self) -> None:
        from agents.deliveries.outboxes import register
        from agents.readers import reading
        from agents.webhooks import outbox
        from agents.webhooks.sending import WebhookOutbox

        reading.READERS.extend(outbox.READERS)
        register(WebhookOutbox())
