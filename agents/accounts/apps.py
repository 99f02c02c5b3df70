"""The Django app for accounts."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "agents.accounts"
    verbose_name = "Organizations and people"
