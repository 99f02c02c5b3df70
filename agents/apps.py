"""Employees at work: the Django app."""

import gc

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "agents"
    verbose_name = "Employees at work"

    def ready(self) -> None:
        """What is loaded stays: no later collection looks through it, and so far none did (gadget_site/memory.py)."""
        gc.freeze()
        gc.enable()
