"""The Django app of approval rules and deputies."""

from django.apps import AppConfig


class ApprovalRulesConfig(AppConfig):
    name = "agents.approval_rules"
    verbose_name = "Approval rules"
