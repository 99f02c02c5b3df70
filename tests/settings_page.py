"""Generate the table in docs/settings.md from the table in the code: `python -m
tests.settings_page` writes it."""

from __future__ import annotations

import re
from typing import Any

from gadget_site.setting import Setting
from gadget_site.settings_table import SETTINGS
from tests.source_tree import ROOT

PAGE = ROOT / "docs" / "settings.md"
HEAD = "| setting | default | example | |\n|---|---|---|---|\n"
_TABLE = re.compile(
    r"(?<=<!-- begin of the table, written by python -m tests\.settings_page -->\n).*?(?=<!-- end)",
    re.DOTALL,
)


def render(page: str, settings: tuple[Setting[Any], ...] = SETTINGS) -> str:
    """Return the page with the table replaced by the table of these settings.

    Raises:
        ValueError: the page does not have exactly one place for the table.
    """
    table = HEAD + "".join(map(_render_row, filter(lambda setting: setting.help, settings)))
    rendered, places = _TABLE.subn(lambda _: table, page)
    if places != 1:
        raise ValueError(f"the page has {places} places for the table")
    return rendered


def _render_row(setting: Setting[Any]) -> str:
    default = (
        f"`{setting.default}`"
        if isinstance(setting.default, str) and setting.default
        else setting.shown_default
    )
    example = f"`{setting.example}`" if setting.example != setting.default else ""
    cells = (f"`{setting.name}`", default, example, setting.help)
    return f"| {' | '.join(cells)} |\n".replace("|  |", "| |")


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
