"""The Django app for policy snapshots and policy drafts."""

from django.apps import AppConfig


class PolicyConfig(AppConfig):
    name = "agents.policy"
    verbose_name = "Policy"
