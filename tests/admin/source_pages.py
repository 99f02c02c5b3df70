"""The pages for connecting sources, and the data that a browser sends from them."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from agents.admin.source_choices import encode_state
from tests.admin.rows import address
from tests.world import World
from tools.connections.models import Source

OPERATION = {"responses": {}, "tags": ["pets"], "summary": "A pet"}
PATHS = {
    "/pets": {
        "get": {**OPERATION, "operationId": "listPets"},
        "post": {**OPERATION, "operationId": "addPet"},
    },
    "/toys/{id}": {"delete": {"responses": {}, "operationId": "dropToy"}},
}


def add(kind: str = "openapi") -> str:
    return f"{address(Source, 'add')}?kind={kind}"


def tools_page(source: Source) -> str:
    return f"/admin/connections/source/{source.pk}/tools/"


def values(world: World, **more: Any) -> dict[str, Any]:
    common = {"organization": world.acme.pk, "name": "pets", "timeout_s": 5, "is_active": "on"}
    return {**common, "authentication": "none", "key_place": "header", **more}


class _Form(HTMLParser):
    """The fields of the form for choosing tools, as found in the page."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: dict[str, Any] = {}
        self._select, self._has_many = "", False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        had = dict(attrs)
        name, value = had.get("name") or "", had.get("value") or ""
        if tag == "select":
            self._select, self._has_many = name, "multiple" in had
        elif tag == "option" and "selected" in had and self._has_many:
            self.sent.setdefault(self._select, []).append(value)
        elif tag == "option" and "selected" in had:
            self.sent[self._select] = value
        elif tag == "input" and had.get("type") == "hidden":
            self.sent.setdefault(name, []).append(value)
        elif tag == "input" and "checked" in had:
            self.sent[name] = value or "on"


def form_on(response: Any) -> dict[str, Any]:
    """Return the data that a browser sends from this page of tools if nothing is changed."""
    form = _Form()
    _, _, behind = response.content.decode().partition(
        '<form method="post" class="flex flex-col gap-4">'
    )
    form.feed(behind.partition("</form>")[0])
    return form.sent


def text_of(response: Any) -> str:
    return " ".join(response.content.decode().split())


def chosen(source: Source, *tools: str, **levels: str) -> dict[str, Any]:
    """Return the data that a browser sends from the page of tools with only these tools ticked and
    with these levels selected."""
    sent: dict[str, Any] = {"shown": []}
    for row in source.tools.all():
        sent["shown"].append(row.pk)
        sent |= {f"seen-{row.pk}": row.hash, f"was-{row.pk}": encode_state(row)}
        sent |= {f"level-{row.pk}": levels.get(row.tool.partition(".")[2], row.level)}
        if row.tool.partition(".")[2] in tools:
            sent[f"chosen-{row.pk}"] = "on"
    return sent


def offered(source: Source) -> set[str]:
    return {row.tool for row in source.tools.all() if row.state == "offered"}
