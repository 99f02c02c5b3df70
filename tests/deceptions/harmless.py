"""Ordinary cards without deceptions, which are about the demo's companies and have values that
other tests use too."""

# ruff: noqa: RUF001 - some of the notes are in other alphabets
from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

from agents.runs.models import Approval
from tests.world import World
from tools.office.demo_companies import generate_demo_companies
from tools.office.records.models import Record

COUNT = 200
COMPANIES = 60
NOTES = (
    "Called on Monday. They want an offer by Friday.",
    "Größe: 120 Mitarbeiter. Ansprechpartnerin: Frau Müller-Lüdenscheidt.",
    "Préfère le téléphone ; relancer après 14 h. Budget : 12 000 €.",
    "Сказали, что перезвонят. Ok.",
    "東京支社の田中さんと話しました。",
    "تمت المكالمة اليوم.",
    "Meeting notes:\n\n- price list sent\n- asked for references\n\nNext step: call again.",
    "Price 1,250.00 USD for 3 units, e.g. model X-200 (v1.2.3). See report.md.",
    "Δx = 3, α = 0.05, 5 μm, 10 Ω 👍🏽 👨‍👩‍👧",
    "Approved budget is 20k; the board meets again in May.",
    "Wants read access to the portal. No discount needed.",
    "The customer checked the invoice and confirmed the amount.",
    "if x:\n    return y\n\n\ndef f():\n    pass",
    "",
)
STATUSES = ("active", "inactive", "pending")


def make_harmless(world: World) -> Iterator[Approval]:
    """Return an iterator that creates 200 ordinary cards, one at each step."""
    companies = generate_demo_companies()[:COMPANIES]
    records = [Record.objects.create(organization=world.acme, **values) for values in companies]
    return islice(_make(world, records), COUNT)


def _make(world: World, records: list[Record]) -> Iterator[Approval]:
    for place, (record, note) in enumerate(zip(cycle(records), cycle(NOTES))):
        status = next(one for one in STATUSES if one != record.status)
        match place % 8:
            case 0:
                yield _update(world, record, phone=f"+44 20 7946 {place:04}")
            case 1:
                yield _update(world, record, notes=f"{note}\n{place}".strip())
            case 2:
                yield _update(world, record, status=status)
            case 3:
                yield _update(
                    world, record, email=f"contact{place}@{record.domain}", score=place % 100
                )
            case 4:
                values = {
                    "name": f"{record.name} Holding {place}",
                    "domain": record.domain,
                    "notes": note,
                }
                yield world.card(
                    tool="data.createRecord", params={**values, "email": f"info@{record.domain}"}
                )
            case 5:
                changes = {"region": "UK" if record.region != "UK" else "EU"}
                others = [str(one.pk) for one in records if one.region != changes["region"]]
                first = place % (len(others) - 4)
                params = {"record_ids": others[first : first + 4], "changes": changes}
                yield world.card(tool="data.bulkUpdate", params=params)
            case 6:
                text = f"# {record.name}\n\n{note}\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
                yield world.card(
                    tool="files.write", params={"path": f"reports/{place}.md", "text": text}
                )
            case _:
                yield world.card(tool="data.bulkDelete", params={"record_ids": [str(record.pk)]})


def _update(world: World, record: Record, **changes: Any) -> Approval:
    return world.card(params={"record_id": str(record.pk), "changes": changes})
