"""The Django app of this folder's models."""

from django.apps import AppConfig


class ApprovalRulesConfig(AppConfig):
    name = "agents.approval_rules"
    verbose_name = "Approval rules"
