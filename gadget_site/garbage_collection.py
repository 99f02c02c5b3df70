"""Garbage collection in long-lived processes, without the cost of scanning loaded modules."""

import gc

from django.apps import apps

NEW_OBJECTS = 20_000
"""The number of new objects between two collections. A request or a pass creates thousands of
objects, and reference counting frees nearly all of them."""


def pause_garbage_collection() -> None:
    """Pause garbage collection until the apps are ready (agents/apps.py). The objects loaded until
    then stay alive, so scanning them would waste 150 ms."""
    if not apps.ready:
        gc.disable()


def freeze_loaded_objects() -> None:
    """Exclude all current objects from later collections: they stay alive, so scanning them would
    waste 50 ms."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
