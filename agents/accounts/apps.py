"""The Django app of this folder's models."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "agents.accounts"
    verbose_name = "Organizations and people"
