"""The toolbox of this installation: every tool of the sources that the settings name."""

from functools import lru_cache

from django.conf import settings
from django.utils.module_loading import import_string

from tools.sources import BuiltinSource, fill
from tools.toolbox.toolbox import Toolbox


@lru_cache(maxsize=1)
def installed_toolbox() -> Toolbox:
    """One per process. `settings.GADGET_TOOLS` lists dotted names of sequences of Tool classes."""
    toolbox = Toolbox()
    fill(toolbox, [BuiltinSource(import_string(dotted)) for dotted in settings.GADGET_TOOLS])
    toolbox.start()
    return toolbox
