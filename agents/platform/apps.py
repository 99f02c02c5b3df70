"""The Django app of this folder's models."""

from django.apps import AppConfig


class PlatformConfig(AppConfig):
    name = "agents.platform"
    verbose_name = "Installation"
