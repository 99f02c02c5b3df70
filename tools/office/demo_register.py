"""The demo's own tool: a simulated company register, which takes as long for each company as a
remote register would."""

import time
from typing import Any

from django.conf import settings
from pydantic import BaseModel, Field

from tools.contract import Level, Tool, ToolContext, ToolResult
from tools.office.demo_companies import SILENT_SINCE
from tools.office.records.fields import RecordId, RecordIds
from tools.office.records.models import Record
from tools.office.records.queries import build_missing_error, get_records
from tools.office.records.tables import build_markdown_table

MAX_LOOKED_UP = 20
LATEST_YEAR = 2025
LAST_YEARS = {"active": LATEST_YEAR, "pending": LATEST_YEAR, "inactive": 2021}


class RegisterEntry(BaseModel):
    """One company in the register."""

    id: RecordId
    name: str
    last_accounts: int = Field(description="The year of the latest accounts")
    is_trading: bool


class RegisterEntries(BaseModel):
    entries: list[RegisterEntry] = Field(description="In the order of the ids")
    trading: int
    silent: int


class CheckRegister(Tool):
    """Result data: {entries: [{id, name, last_accounts, is_trading}], trading, silent}."""

    name = "demo.checkRegister"
    display_name = "Check the register (simulated)"
    description = (
        "Look up companies in the demo's simulated company register: the year of their latest accounts. Each look-up "
        "takes a moment, as a remote register would. Stores nothing."
    )
    level = Level.READ
    source = "the demo"
    Output = RegisterEntries

    class Params(BaseModel):
        record_ids: RecordIds = Field(
            min_length=1,
            max_length=MAX_LOOKED_UP,
            description="Ids of the records, from data.searchRecords",
        )

    def execute(self, params: Params, context: ToolContext) -> ToolResult:
        found = get_records(context.organization_id).in_bulk(
            [int(record_id) for record_id in params.record_ids]
        )
        if absent := [record_id for record_id in params.record_ids if int(record_id) not in found]:
            raise build_missing_error(absent)
        entries = []
        for number, record_id in enumerate(params.record_ids):
            record = found[int(record_id)]
            context.progress(number / len(found), f"{number + 1} of {len(found)}: {record.name}")
            time.sleep(settings.GADGET_DEMO_PACE)
            entries.append(_look_up(record))
        trading = sum(entry["is_trading"] for entry in entries)
        head = f"{trading} of {len(entries)} still file accounts"
        rows = ((entry["id"], entry["name"], entry["last_accounts"]) for entry in entries)
        table = build_markdown_table(("id", "name", "latest accounts"), rows)
        data = {"entries": entries, "trading": trading, "silent": len(entries) - trading}
        return ToolResult.ok(data, head, f"{head}.\n\n{table}")

    def running_summary(self, params: Params) -> str:
        return f"Checking {len(params.record_ids)} in the register…"


def _look_up(record: Record) -> dict[str, Any]:
    year = SILENT_SINCE.get(record.name, LAST_YEARS[record.status])
    return {
        "id": str(record.pk),
        "name": record.name,
        "last_accounts": year,
        "is_trading": year == LATEST_YEAR,
    }


DEMO_TOOLS: tuple[type[Tool], ...] = (CheckRegister,)
