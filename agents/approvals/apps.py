"""The Django app of this folder's models."""

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "agents.approvals"
    verbose_name = "Approvals"
