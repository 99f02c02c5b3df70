"""The Django app of this folder's models."""

from django.apps import AppConfig


class NoticesConfig(AppConfig):
    name = "agents.notices"
    verbose_name = "Notices"
