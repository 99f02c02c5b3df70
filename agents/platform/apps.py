"""The Django app for the platform's models."""

from django.apps import AppConfig


class PlatformConfig(AppConfig):
    name = "agents.platform"
    verbose_name = "Installation"
