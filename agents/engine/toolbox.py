"""The toolbox of this installation: every tool of the sources that the settings name."""

from functools import lru_cache

from django.conf import settings
from django.utils.module_loading import import_string

from agents.engine.shared_limits import shared_guards
from tools.config import Config
from tools.sources import BuiltinSource, fill
from tools.toolbox import Limits, Policy, Toolbox


@lru_cache(maxsize=1)
def installed_toolbox() -> Toolbox:
    """One per process. `settings.GADGET_TOOLS` lists dotted names of sequences of tools; `gadget.yaml` limits them."""
    config: Config = settings.GADGET_CONFIG
    toolbox = Toolbox(
        Policy(
            disabled=config.tools.disabled,
            strict_capabilities=config.tools.strict_capabilities,
            features_by_tool=config.tools.features_by_tool,
        ),
        config.environment,
        Limits(config.tools.default_timeout, config.tools.max_concurrent_calls),
        config.tools.allow_dynamic_registration,
    )
    toolbox.guards = shared_guards()
    fill(toolbox, [BuiltinSource(import_string(dotted)) for dotted in settings.GADGET_TOOLS])
    toolbox.start()
    return toolbox
