"""Employees at work: the Django app."""

import gc

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "agents"
    verbose_name = "Employees at work"

    def ready(self) -> None:
        """Exclude the loaded modules from garbage collection, and switch it on again after
        `gadget_site/garbage_collection.py` paused it."""
        gc.freeze()
        gc.enable()
