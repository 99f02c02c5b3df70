"""The Django app for platform models."""

from django.apps import AppConfig


class PlatformConfig(AppConfig):
    name = "agents.platform"
    verbose_name = "Installation"
