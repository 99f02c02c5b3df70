"""Read and check every setting of the installation. Gadget does not start with a wrong setting."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gadget_site.faults import Faults, SettingError
from gadget_site.keys import KEY_EXAMPLE
from gadget_site.setting import Setting
from gadget_site.setting_names import refuse_unknown_name
from gadget_site.settings_table import SETTINGS, SiteSettings

VARIABLE_OF_CONFIG = re.compile(r"\$\{([^}]*)\}")
FIRST_SETTINGS: tuple[Setting[Any], ...] = (
    SiteSettings.allowed_hosts,
    SiteSettings.host,
    SiteSettings.debug,
)
"""The settings that affect how other settings are read, besides the data folder."""


def read_settings(environ: Mapping[str, str], base_dir: Path) -> SiteSettings:
    """Return the settings of the installation in `base_dir`.

    Raises:
        SettingError: lists all wrong settings. Settings that affect how other settings are read are
            checked first.
    """
    site, faults = SiteSettings(environ, base_dir), Faults()
    used_by_tools = frozenset(VARIABLE_OF_CONFIG.findall(site.config_text))
    for name in sorted(environ):
        faults.check(refuse_unknown_name, name, environ, used_by_tools)
    faults.check(lambda: site.data_dir)
    for setting in FIRST_SETTINGS:
        faults.check(site.read, setting)
    faults.raise_all()
    faults.check(lambda: site.config)
    for setting in SETTINGS:
        faults.check(site.read, setting)
    faults.check(_check_audit_keys, site)
    faults.raise_all()
    return site


def _check_audit_keys(site: SiteSettings) -> None:
    if not set(site.audit_keys).isdisjoint(site.encryption_keys):
        fault = "contains a key of GADGET_ENCRYPTION_KEYS; the audit needs its own keys"
        raise SettingError("GADGET_AUDIT_KEYS", fault, KEY_EXAMPLE)
