"""The Django app for employees at work."""

import gc

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "agents"
    verbose_name = "Employees at work"

    def ready(self) -> None:
        """Exclude the loaded modules from garbage collection, and resume garbage collection, which
        `gadget_site/garbage_collection.py` paused."""
        gc.freeze()
        gc.enable()
