"""The settings of `make screens`: those of tests, without the test tools."""

from tests.settings import *  # noqa: F403

GADGET_TOOLS = [tools for tools in GADGET_TOOLS if not tools.startswith("tests.")]  # noqa: F405
