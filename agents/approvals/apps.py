"""The Django app of approvals: claims, snoozes and saved views."""

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "agents.approvals"
    verbose_name = "Approvals"
