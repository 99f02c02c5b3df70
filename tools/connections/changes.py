"""What changes an organisation's sources and allowed hosts; each change makes a new generation of its tools."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from tools.contract import ErrorCode, Level, ToolError
from tools.network import host_of, read_url

from .models import LONGEST_KEY, AllowedHost, Source, SourceTool

MOST_TOOLS = 5_000
"""Of one source."""

_DESCRIBED = (
    *("title", "tags", "definition", "hash", "accepted_hash", "accepted_definition"),
    *("inferred_level", "level", "gone_at"),
)
_DECIDED = ("is_chosen", "level", "accepted_hash", "accepted_definition")


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
    """What a refresh has found, by the names of tools; `back` were gone before."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


def new_generation(organization_id: int) -> None:
    """Tell every process that it has to read the organisation's tools again; in the transaction of the change."""
    organizations = Source.organization.field.related_model._default_manager
    organizations.filter(pk=organization_id).update(tools_version=F("tools_version") + 1)


def keep_description(source: Source, found: Description) -> Refreshed:
    """Write what the source describes now; a tool keeps its name, and what has changed has to be accepted anew.

    What an admin accepts of an API is chosen by hand and its level can only be what its method allows, so a change of
    its texts asks nobody, unless its level is lower than that, or would fall; that of an MCP server's tool is
    quarantined, because the server says what it likes.

    Raises:
        ToolError: OPERATION_FAILED, the source was deleted or leads elsewhere since `source` was read.
    """
    described, left_out = _fitting(found)
    with transaction.atomic():
        now = _locked(source)
        before = {row.key: row for row in SourceTool.objects.filter(source=source)}
        taken = {row.tool.lower() for row in before.values()}
        new = [_row(source, each, _free_name(each.tool, taken)) for key, each in described.items() if key not in before]
        seen = [(row, described[key]) for key, row in before.items() if key in described]
        back = tuple(row.tool for row, each in seen if row.gone_at is not None)
        differs = tuple(row.tool for row, each in seen if row.hash != each.hash)
        written = [_changed(source, row, each) for row, each in seen if _is_news(row, each)]
        gone = [row for key, row in before.items() if key not in described and row.gone_at is None]
        SourceTool.objects.bulk_create(new, batch_size=200)
        SourceTool.objects.bulk_create(  # several times as fast as a bulk_update
            written, batch_size=200, update_conflicts=True, unique_fields=["id"], update_fields=_DESCRIBED
        )
        SourceTool.objects.filter(pk__in=[row.pk for row in gone]).update(gone_at=Now())
        base_url = now.base_url or found.base_url
        Source.objects.filter(pk=source.pk).update(
            title=found.title[:200],
            described_version=found.version[:60],
            document=found.document,
            base_url=base_url,
            problem="",
            checked_at=Now(),
            refreshed_at=Now(),
        )
        if new or written or gone or (base_url, found.title[:200]) != (now.base_url, now.title):
            new_generation(source.organization_id)
    return Refreshed(
        new=tuple(row.tool for row in new),
        changed=tuple(tool for tool in differs if tool not in back),
        gone=tuple(row.tool for row in gone),
        back=back,
        left_out=left_out,
    )


def note_problem(source: Source, problem: str) -> None:
    """It was asked and did not answer as it should; empty: it did."""
    Source.objects.filter(pk=source.pk).update(problem=problem[:500], checked_at=Now())


def note_told(source: Source, told: str) -> None:
    """What reading it told, for an admin."""
    Source.objects.filter(pk=source.pk).update(told=told[:2_000])


@dataclass(frozen=True)
class Choice:
    """What an admin decides about one tool of a source.

    Attributes:
        level: empty for what was inferred.
        seen: the hash of the definition that was shown.
    """

    is_chosen: bool
    level: str
    seen: str


def choose(source: Source, choices: Mapping[int, Choice]) -> list[SourceTool]:
    """Write the choices, by the id of the row, and accept each chosen definition that was shown; what has changed.

    What is described in another way by now, or no more, can only be taken away.
    """
    with transaction.atomic():
        Source.objects.select_for_update(no_key=True).only("pk").get(pk=source.pk)
        rows = SourceTool.objects.filter(source=source, pk__in=choices).order_by("pk")
        changed = [row for row in rows if _decided(row, choices[row.pk])]
        SourceTool.objects.bulk_update(changed, _DECIDED, batch_size=200)
        if changed:
            new_generation(source.organization_id)
    return changed


def is_private(source: Source) -> bool:
    """Whether an admin allows that a host of the source lies in a network that is not public."""
    return _allowed(source).filter(may_be_private=True).exists()


def allow_private(source: Source, *, by_superuser: bool = False) -> None:
    """Allow private addresses for the hosts of the source; tools that choose their address still ask.

    Without a superuser this holds only for servers that the installation allows.
    """
    opened = {"may_be_private": True, **({"opened_by_superuser": True} if by_superuser else {})}
    with transaction.atomic():
        for host in sorted(_hosts_of(source)):
            AllowedHost.objects.update_or_create(
                organization_id=source.organization_id,
                host=host,
                defaults=opened,
                create_defaults={**opened, "without_card": False},
            )
        new_generation(source.organization_id)


def forbid_private(source: Source) -> None:
    """The same taken back, also for everything else of the organisation that goes to these hosts."""
    with transaction.atomic():
        _allowed(source).update(may_be_private=False, opened_by_superuser=False)
        new_generation(source.organization_id)


def sources_to_look_at(organization_id: int | None = None) -> Iterable[Source]:
    """Active sources, of one organisation or of all, without their documents."""
    wanted = Q() if organization_id is None else Q(organization_id=organization_id)
    rows = Source.objects.filter(wanted, is_active=True).select_related("organization")
    return rows.defer("document").order_by("organization_id", "name")


def _allowed(source: Source) -> QuerySet[AllowedHost]:
    return AllowedHost.objects.filter(organization_id=source.organization_id, host__in=_hosts_of(source))


def _hosts_of(source: Source) -> frozenset[str]:
    """Of the addresses that can be read."""
    hosts = set()
    for address in filter(None, (source.address, source.base_url, source.token_url)):
        with suppress(ToolError):
            hosts.add(host_of(read_url(address)))
    return frozenset(hosts)


def _fitting(found: Description) -> tuple[dict[str, Described], tuple[tuple[str, str], ...]]:
    """What can be kept, by key, and all that is left out."""
    described: dict[str, Described] = {}
    left_out = list(found.left_out)
    for each in found.tools:
        if each.key in described:
            left_out.append((each.key, "it is described twice"))
        elif len(each.key) > LONGEST_KEY:
            left_out.append((f"{each.key[:60]}…", f"it is longer than {LONGEST_KEY} characters"))
        elif len(described) == MOST_TOOLS:
            left_out.append((each.key, f"it stands behind the first {MOST_TOOLS:,}"))
        else:
            described[each.key] = each
    return described, tuple(left_out)


def _locked(source: Source) -> Source:
    """The row as it is now, without its document; nobody changes it or its tools meanwhile."""
    rows = Source.objects.select_for_update(no_key=True).filter(pk=source.pk)
    same = {"address": source.address, "command": source.command, "authentication": source.authentication}
    now = rows.filter(**same).defer("document").first()
    if now is not None and (source.address or source.is_mcp or rows.filter(document=source.document).exists()):
        return now
    raise ToolError(ErrorCode.OPERATION_FAILED, "It was changed while it was asked; ask it again.", attempted=False)


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


def _is_news(row: SourceTool, each: Described) -> bool:
    is_other = row.hash != each.hash or row.inferred_level != each.inferred_level
    return is_other or row.gone_at is not None or row.tags != list(each.tags)


def _changed(source: Source, row: SourceTool, each: Described) -> SourceTool:
    before, was_accepted = row.effective_level, not row.is_quarantined
    is_lowered = before.rank < Level(row.inferred_level).rank
    if was_accepted and not source.is_mcp and not is_lowered:
        row.accepted_hash = each.hash
    if row.hash != each.hash or not source.is_mcp:
        row.level = _kept_level(row, each.inferred_level)
    if row.is_chosen and Level(row.level or each.inferred_level).rank < before.rank:
        row.level, row.accepted_hash = before.value, ""
    if was_accepted and row.accepted_hash != each.hash:
        row.accepted_definition = row.definition
    row.title, row.tags, row.definition = each.title[:200], list(each.tags), dict(each.definition)
    row.hash, row.inferred_level, row.gone_at = each.hash, each.inferred_level.value, None
    return row


def _kept_level(row: SourceTool, inferred: Level) -> str:
    """What an admin lowered was lowered from the old inferred level alone; what was raised never falls by itself."""
    before = Level(row.inferred_level)
    if not row.level or inferred is before:
        return row.level
    if Level(row.level).rank < before.rank:
        return ""
    return max(Level(row.level), inferred, key=lambda level: level.rank).value


def _decided(row: SourceTool, choice: Choice) -> bool:
    """Write the choice on the row; whether that changes anything."""
    before = (row.is_chosen, row.level, row.accepted_hash)
    if choice.seen == row.hash and row.gone_at is None:
        row.is_chosen, row.level = choice.is_chosen, choice.level
        if choice.is_chosen:
            row.accepted_hash, row.accepted_definition = row.hash, {}
    elif not choice.is_chosen:
        row.is_chosen = False
    return before != (row.is_chosen, row.level, row.accepted_hash)


def _free_name(wanted: str, taken: set[str]) -> str:
    """The name, or with a number behind it if another operation has had it first; it is taken from then on.

    Capitals make no difference, as between all names of tools.
    """
    candidates = chain([wanted], (f"{wanted}_{number}" for number in count(2)))
    name = next(each for each in candidates if each.lower() not in taken)
    taken.add(name.lower())
    return name
