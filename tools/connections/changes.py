"""What changes an organisation's sources and allowed hosts; each change makes a new generation of its tools."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from tools.contract import Level
from tools.network import host_of, read_url

from .models import AllowedHost, Source, SourceTool

MOST_TOOLS = 5_000
"""Of one source."""


@dataclass(frozen=True)
class Described:
    """One tool, as a source describes it now.

    Attributes:
        key: what the source calls it.
        tool: the name that it gets here, unless it has one already.
        definition, hash: see `SourceTool`.
    """

    key: str
    tool: str
    title: str
    tags: tuple[str, ...]
    definition: Mapping[str, Any]
    hash: str
    inferred_level: Level


@dataclass(frozen=True)
class Description:
    """Everything that a source describes now.

    Attributes:
        left_out: what cannot become a tool: where it stands and the reason, in words.
        document: the text that was read, where there is one.
        base_url: of an API, where its operations go.
        note: what an admin should know, as a sentence.
    """

    title: str
    version: str
    tools: tuple[Described, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    document: str = ""
    base_url: str = ""
    note: str = ""


@dataclass(frozen=True)
class Refreshed:
    """What a refresh has found, by the names of tools."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = field(default=())


def new_generation(organization_id: int) -> None:
    """Tell every process that it has to read the organisation's tools again; in the transaction of the change."""
    organizations = Source.organization.field.related_model._default_manager
    organizations.filter(pk=organization_id).update(tools_version=F("tools_version") + 1)


def keep_description(source: Source, found: Description) -> Refreshed:
    """Write what the source describes now; a tool keeps its name, and what has changed has to be accepted anew.

    What an admin accepts of an API is chosen by hand and its level can only be what its method allows, so a change of
    its texts asks nobody; that of an MCP server's tool is quarantined, because the server says what it likes.
    """
    with transaction.atomic():
        Source.objects.select_for_update(of=("self",)).only("pk").get(pk=source.pk)
        before = {row.key: row for row in SourceTool.objects.filter(source=source)}
        names = {row.tool for row in before.values()}
        made, changed, kept = [], [], set()
        for each in found.tools[:MOST_TOOLS]:
            kept.add(each.key)
            row = before.get(each.key)
            if row is None:
                name = _free_name(each.tool, names)
                names.add(name)
                made.append(_row(source, each, name))
            elif row.hash != each.hash or row.gone_at is not None:
                changed.append(_changed(source, row, each))
        SourceTool.objects.bulk_create(made, batch_size=200)
        SourceTool.objects.bulk_update(
            changed,
            ["title", "tags", "definition", "hash", "accepted_hash", "inferred_level", "level", "gone_at"],
            batch_size=100,
        )
        lost = [row for key, row in before.items() if key not in kept and row.gone_at is None]
        SourceTool.objects.filter(pk__in=[row.pk for row in lost]).update(gone_at=Now())
        Source.objects.filter(pk=source.pk).update(
            title=found.title[:200],
            described_version=found.version[:60],
            document=found.document,
            base_url=found.base_url,
            problem="",
            checked_at=Now(),
            refreshed_at=Now(),
        )
        if made or changed or lost or found.base_url != source.base_url:
            new_generation(source.organization_id)
    return Refreshed(
        tuple(row.tool for row in made),
        tuple(row.tool for row in changed),
        tuple(row.tool for row in lost),
        found.left_out,
    )


def note_problem(source: Source, problem: str) -> None:
    """It was asked and did not answer as it should; empty: it did."""
    Source.objects.filter(pk=source.pk).update(problem=problem[:500], checked_at=Now())


@dataclass(frozen=True)
class Choice:
    """What an admin decides about one tool of a source; `level` empty: what was inferred."""

    is_chosen: bool
    level: str


def choose(source: Source, choices: Mapping[int, Choice]) -> list[SourceTool]:
    """Write the choices, by the id of the row, and accept each chosen definition as it is now; what has changed."""
    with transaction.atomic():
        rows = SourceTool.objects.select_for_update().filter(source=source, pk__in=choices).order_by("pk")
        changed = [row for row in rows if _decided(row, choices[row.pk])]
        SourceTool.objects.bulk_update(changed, ["is_chosen", "level", "accepted_hash"], batch_size=200)
        if changed:
            new_generation(source.organization_id)
    return changed


def allow_private(source: Source) -> None:
    """The hosts of the source may lie in a network that is not public."""
    for address in filter(None, (source.address, source.base_url, source.token_url)):
        AllowedHost.objects.update_or_create(
            organization_id=source.organization_id, host=host_of(read_url(address)), defaults={"may_be_private": True}
        )


def sources_to_look_at(organization_id: int | None = None) -> Iterable[Source]:
    """Active sources, of one organisation or of all, without their documents."""
    wanted = Q() if organization_id is None else Q(organization_id=organization_id)
    rows = Source.objects.filter(wanted, is_active=True).select_related("organization")
    return rows.defer("document").order_by("organization_id", "name")


def _row(source: Source, each: Described, name: str) -> SourceTool:
    return SourceTool(
        source=source,
        key=each.key,
        tool=name,
        title=each.title[:200],
        tags=list(each.tags),
        definition=dict(each.definition),
        hash=each.hash,
        inferred_level=each.inferred_level.value,
    )


def _changed(source: Source, row: SourceTool, each: Described) -> SourceTool:
    accepted = row.accepted_hash == row.hash and not source.is_mcp
    row.title, row.tags, row.definition = each.title[:200], list(each.tags), dict(each.definition)
    row.hash, row.gone_at = each.hash, None
    if accepted:
        row.accepted_hash = each.hash
    if row.level and Level(row.level).rank < each.inferred_level.rank and row.inferred_level != each.inferred_level:
        row.level = ""  # it was lowered from another level than the one that is inferred now
    row.inferred_level = each.inferred_level.value
    return row


def _decided(row: SourceTool, choice: Choice) -> bool:
    """Write the choice on the row; whether that changes anything."""
    before = (row.is_chosen, row.level, row.accepted_hash)
    row.is_chosen, row.level = choice.is_chosen, choice.level
    if choice.is_chosen:
        row.accepted_hash = row.hash
    return before != (row.is_chosen, row.level, row.accepted_hash)


def _free_name(wanted: str, taken: set[str]) -> str:
    """The name, or with a number behind it, if another operation has had it first."""
    if wanted not in taken:
        return wanted
    return next(name for number in range(2, MOST_TOOLS + 2) if (name := f"{wanted}_{number}") not in taken)
