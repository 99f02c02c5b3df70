"""The Django app of the gateway."""

from django.apps import AppConfig


class GatewayConfig(AppConfig):
    name = "agents.gateway"
    verbose_name = "Gateway"
