"""Packages installed for the tests of plugins: the example, and one with every possible fault."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.plugins.packages import EXAMPLE, install, tool_named, write_package

PROMISES = {
    "fine": tool_named("fine.hello") + "TOOLS = (Hello,)\n",
    "maker": tool_named("maker.hello") + "def make():\n    return [Hello(), Hello]\n",
    "versions": tool_named("versions.hello")
    + "class Newer(Hello):\n    version, author = '2.0', 'A person'\n\nTOOLS = [Hello, Newer()]\n",
    "again": tool_named("fine.hello", "2.0") + "TOOLS = [Hello]\n",
    "shipped": tool_named("data.searchRecords") + "TOOLS = [Hello]\n",
    "newer": tool_named("data.searchRecords", "9.0") + "TOOLS = [Hello]\n",
    "borrowed": "from tools.office.tools import OFFICE_TOOLS as TOOLS\n",
    "pushing": tool_named("data.push") + "TOOLS = [Hello]\n",
    "uploading": tool_named("files.upload")
    + "class Fine(Hello):\n    name = 'uploading.fine'\n\nTOOLS = [Fine, Hello]\n",
    "waiting": "class Own:\n    name, left_out, withheld = 'own', (), {'schedule.start': 'It is closed today.'}\n"
    "    def tools(self): return []\n    tool = start = shutdown = tools\n\nTOOLS = Own()\n",
    "half": tool_named("half.hello") + "TOOLS = [Hello, 3]\n",
    "three": "TOOLS = [3]\n",
    "raises": "raise RuntimeError('the license\\nis missing')\n",
    "silent": "class E(Exception):\n    def __str__(self): raise self\n\nraise E\n",
    "exits": "import sys\n\nsys.exit('goodbye')\n",
    "unwritten": "def TOOLS(:\n",
    "needy": "import a_package_that_nobody_has\n",
    "empty": "TOOLS = []\n",
    "nameless": "",
    "word": "TOOLS = 'data.searchRecords'\n",
    "abstract": "from tools.contract import Tool\n\nclass Idea(Tool):\n    name = 'idea.think'\n\nTOOLS = [Idea]\n",
    "spaced": tool_named("say hello") + "TOOLS = [Hello]\n",
    "speechless": tool_named("mute.hello") + "Hello.description = ' '\nTOOLS = [Hello]\n",
    "curious": "from tools.contract import tool\n\n"
    "@tool('curious.look')\ndef look(organization_id: int) -> str:\n    'Look.'\n    return ''\n\nTOOLS = [look]\n",
    "lazy": tool_named("lazy.hello")
    + "    def start(self):\n        raise OSError('the disk with the key is not there')\n\nTOOLS = [Hello]\n",
    "away": "class Own:\n    name, left_out = 'own', ()\n    def tools(self): return []\n    tool = shutdown = tools\n"
    "    def start(self): raise OSError('the register is away')\n\nTOOLS = Own()\n",
    "holding": "class Own:\n    name, left_out, withheld = 'own', (), {'fine.hello': 'fine.hello is closed today.'}\n"
    "    def tools(self): return []\n    tool = start = shutdown = tools\n\nTOOLS = Own()\n",
    "failing": "def make():\n    raise OSError('no table')\n",
}
"""The source texts of the modules in one package, by the names of their entry points; each module
is named `promises_` followed by that name."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the packages are installed."""
    folder = tmp_path_factory.mktemp("plugins")
    entries = {
        name: f"promises_{name}:{'make' if 'def make' in text else 'TOOLS'}"
        for name, text in PROMISES.items()
    }
    # Plugins cannot have the name `office`.
    entries |= {
        "module": "promises_fine",
        "office": "promises_fine:TOOLS",
    }
    modules = {f"promises_{name}": text for name, text in PROMISES.items()}
    promises = write_package(folder, "gadget-promises", modules, entries)
    double = write_package(
        folder, "gadget-double", {"double": "TOOLS = []\n"}, {"twofold": "double:TOOLS"}
    )
    other = write_package(
        folder, "gadget-other", {"other": "TOOLS = []\n"}, {"twofold": "other:TOOLS"}
    )
    return install(folder / "site", EXAMPLE, promises, double, other)


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Add the installed packages to this process's path. None of their modules is imported yet, and
    those that a test imports are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(site))
    yield site
    for name, module in list(sys.modules.items()):
        if str(site) in str(getattr(module, "__file__", "")):
            del sys.modules[name]
