"""The settings of tests: the product's settings, with private servers and a separate data folder.

Real web, worker and sweeper processes that a test starts use them too, with the test's own
DATABASE_URL and REDIS_URL.
"""

import os
from pathlib import Path

from tests import services

services.prepare_environment()

from gadget_site.settings import *  # noqa: E402, F403
from gadget_site.settings import DATABASES, SITE  # noqa: E402

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
AXES_ENABLED = False
_PROBES = (
    *(
        "probes",
        "composed_probes",
        "bad_probes",
        "late_probes",
        "outside_probes",
        "office_probes",
        "suite_probes",
    ),
    "context_probes",
)
GADGET_TOOLS = [
    *GADGET_TOOLS,  # noqa: F405
    *(f"tests.{module}.PROBES" for module in _PROBES),
]
GADGET_OFFICE_PLUGINS = ["office", "office-demo"]

GADGET_SCRIPTS_DIR = Path(
    os.environ.setdefault(services.SCRIPTS_VARIABLE, str(SITE.data_dir / "scripts"))
)

if SITE.database.is_sqlite:
    DATABASES["default"]["TEST"] = {"NAME": str(SITE.data_dir / "test.sqlite3")}
elif services.GIVEN_VARIABLE not in os.environ:
    DATABASES["default"]["TEST"] = {"NAME": services.test_database_name(SITE.database.name)}
