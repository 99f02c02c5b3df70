"""The Django app of this folder's models."""

from django.apps import AppConfig


class GatewayConfig(AppConfig):
    name = "agents.gateway"
    verbose_name = "Gateway"
