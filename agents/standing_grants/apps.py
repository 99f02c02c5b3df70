"""The Django app of this folder's models."""

from django.apps import AppConfig


class StandingGrantsConfig(AppConfig):
    name = "agents.standing_grants"
    verbose_name = "Standing grants"
