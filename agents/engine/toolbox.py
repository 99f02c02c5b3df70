"""The toolbox of this installation: what every organisation has, from the sources that the settings name."""

import logging
from functools import lru_cache

from django.conf import settings
from django.utils.module_loading import import_string

from agents.engine.shared_limits import shared_guards
from tools.config import Config
from tools.sources import Broken, PluginSource, fill, plugin_sources
from tools.sources.builtin import BuiltinSource
from tools.toolbox import Limits, Policy, Toolbox

logger = logging.getLogger(__name__)


@lru_cache(maxsize=1)
def installed_toolbox() -> Toolbox:
    """What every organisation has; one per process.

    `settings.GADGET_TOOLS` lists dotted names of sequences of tools; `gadget.yaml` names plugins and limits them all.
    """
    config: Config = settings.GADGET_CONFIG
    for service, variables in config.unset.items():
        logger.warning("the credentials %s are left out: %s is not set", service, ", ".join(variables))
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
    fill(toolbox, [*_shipped(), *installed_plugins()[0]])
    toolbox.start()
    return toolbox


@lru_cache(maxsize=1)
def installed_plugins() -> tuple[list[PluginSource], list[Broken]]:
    """The plugins that `gadget.yaml` names and that work beside all others, and those that do not, with the reason."""
    taken = {tool.name for source in _shipped() for tool in source.tools()}
    return plugin_sources(settings.GADGET_CONFIG.tools.plugins, taken)


@lru_cache(maxsize=1)
def _shipped() -> list[BuiltinSource]:
    sources = [BuiltinSource(import_string(dotted)) for dotted in settings.GADGET_TOOLS]
    for source in sources:
        source.start()
    return sources
