"""Employees at work: the Django app."""

import gc

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "agents"
    verbose_name = "Employees at work"

    def ready(self) -> None:
        """Exclude the loaded modules from garbage collection, which was off until now
        (gadget_site/memory.py)."""
        gc.freeze()
        gc.enable()
