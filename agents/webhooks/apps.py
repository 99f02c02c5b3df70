"""The Django app of this folder's models."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "agents.webhooks"
    verbose_name = "Webhooks"
