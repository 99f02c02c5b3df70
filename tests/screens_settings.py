"""The settings of `make screens`: the settings of tests, without the test tools and with the demo's
own scripts."""

from tests.settings import *  # noqa: F403

GADGET_SCRIPTS_DIR = BASE_DIR / "gadget_site" / "demo" / "scripts"  # noqa: F405
GADGET_TOOLS = [tools for tools in GADGET_TOOLS if not tools.startswith("tests.")]  # noqa: F405
