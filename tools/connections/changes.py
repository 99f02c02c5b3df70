"""Changes to an organization's sources and allowed hosts. Each change increases the version of the
organization's tools, so that every process reloads them."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from tools.connections.models import MAX_KEY_LENGTH, AllowedHost, Source, SourceTool
from tools.contract import ErrorCode, Level, ToolError
from tools.network import get_host, read_url

MAX_TOOLS = 5_000
"""The maximum number of tools that one source may have."""

_DESCRIBED_FIELDS = (
    *("title", "tags", "definition", "hash", "accepted_hash", "accepted_definition"),
    *("inferred_level", "level", "plain_params", "gone_at"),
)
_CHOICE_FIELDS = (
    *("is_chosen", "level", "named_params", "plain_params"),
    *("accepted_hash", "accepted_definition", "accepted_title"),
)


@dataclass(frozen=True)
class DescribedTool:
    """One tool in a source's current description.

    Attributes:
        key: the source's own name for the tool.
        tool: the name that the tool gets in Gadget, unless it already has one.
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
class SourceDescription:
    """A source's current description.

    Attributes:
        skipped: operations that cannot become tools, each with the reason.
        document: the text of an API's description.
        base_url: the base address of an API's operations.
        note: a sentence for the admin.
    """

    title: str
    version: str
    tools: tuple[DescribedTool, ...]
    skipped: tuple[tuple[str, str], ...] = ()
    document: str = ""
    base_url: str = ""
    note: str = ""


@dataclass(frozen=True)
class RefreshResult:
    """The names of the tools that a refresh changed.

    Attributes:
        back: tools that are described again.
        retitled: tools in use with a new title that an admin has not accepted yet.
        skipped: operations that did not become tools, each with the reason.
    """

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    retitled: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()


def bump_tools_version(organization_id: int) -> None:
    """Make every process reload the organization's tools; call this in the same transaction as the
    change."""
    organizations = Source.organization.field.related_model._default_manager
    organizations.filter(pk=organization_id).update(tools_version=F("tools_version") + 1)


def save_description(source: Source, found: SourceDescription) -> RefreshResult:
    """Save the source's current description. Tools keep their names, and some changes wait until an
    admin accepts them.

    The method of an API's operation bounds its level, so a changed definition is accepted
    automatically, unless an admin lowered the level or the level would fall. A changed tool of an
    MCP server is always quarantined, because nothing bounds what the server may do. A changed title
    waits until an admin accepts it; the tool can still be used.

    Raises:
        ToolError: OPERATION_FAILED, if the source was deleted or its address has changed since
            `source` was read.
    """
    described, skipped = _select_tools(found)
    with transaction.atomic():
        now = _lock_source(source)
        before = {row.key: row for row in SourceTool.objects.filter(source=source)}
        taken = {row.tool.lower() for row in before.values()}
        new = [
            _build_row(source, each, _reserve_name(each.tool, taken))
            for key, each in described.items()
            if key not in before
        ]
        seen = [(row, described[key]) for key, row in before.items() if key in described]
        back = tuple(row.tool for row, each in seen if row.gone_at is not None)
        differs = tuple(row.tool for row, each in seen if row.hash != each.hash)
        old_titles = {row.pk: row.title for row, _ in seen}
        written = [_update_row(source, row, each) for row, each in seen if _is_outdated(row, each)]
        gone = [row for key, row in before.items() if key not in described and row.gone_at is None]
        SourceTool.objects.bulk_create(new, batch_size=200)
        SourceTool.objects.bulk_create(  # an upsert, because bulk_update is several times slower
            written,
            batch_size=200,
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=_DESCRIBED_FIELDS,
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
            bump_tools_version(source.organization_id)
    return RefreshResult(
        new=tuple(row.tool for row in new),
        changed=tuple(tool for tool in differs if tool not in back),
        gone=tuple(row.tool for row in gone),
        back=back,
        retitled=tuple(
            row.tool for row in written if row.has_waiting_title and row.title != old_titles[row.pk]
        ),
        skipped=skipped,
    )


def record_problem(source: Source, problem: str) -> None:
    """Record the result of a check: the problem, or an empty text if there is none."""
    Source.objects.filter(pk=source.pk).update(problem=problem[:500], checked_at=Now())


def record_import_log(source: Source, log: str) -> None:
    """Record the log of the last import, for an admin."""
    Source.objects.filter(pk=source.pk).update(told=log[:2_000])


@dataclass(frozen=True)
class ToolChoice:
    """An admin's choice for one tool of a source.

    Attributes:
        level: empty for the inferred level.
        seen: the hash of the definition that the admin saw.
        seen_title: the title that the admin saw; None for the current one.
        accepts_title: accept the title even if the definition is already accepted.
        named, plain: as `named_params` and `plain_params` of `SourceTool`; None to keep them.
    """

    is_chosen: bool
    level: str
    seen: str
    seen_title: str | None = None
    accepts_title: bool = False
    named: tuple[str, ...] | None = None
    plain: tuple[str, ...] | None = None


def apply_choices(source: Source, choices: Mapping[int, ToolChoice]) -> list[SourceTool]:
    """Save choices by row id, accept the chosen definitions, and return the changed rows.

    A tool whose definition is no longer the one that the admin saw can only be deselected.
    """
    with transaction.atomic():
        Source.objects.select_for_update(no_key=True).only("pk").get(pk=source.pk)
        rows = SourceTool.objects.filter(source=source, pk__in=choices).order_by("pk")
        changed = [row for row in rows if _set_choice(row, choices[row.pk])]
        SourceTool.objects.bulk_update(changed, _CHOICE_FIELDS, batch_size=200)
        if changed:
            bump_tools_version(source.organization_id)
    return changed


def is_private_allowed(source: Source) -> bool:
    """Return True if an admin allows private addresses for a host of the source."""
    return _filter_hosts(source).filter(may_be_private=True).exists()


def allow_private(source: Source, *, by_superuser: bool = False) -> None:
    """Allow private addresses for the source's hosts; other tools still need approval to reach
    these hosts.

    Unless a superuser allows it, this covers only servers that the installation allows.
    """
    opened = {"may_be_private": True, **({"opened_by_superuser": True} if by_superuser else {})}
    with transaction.atomic():
        for host in sorted(_list_hosts(source)):
            AllowedHost.objects.update_or_create(
                organization_id=source.organization_id,
                host=host,
                defaults=opened,
                create_defaults={**opened, "without_card": False},
            )
        bump_tools_version(source.organization_id)


def forbid_private(source: Source) -> None:
    """Forbid private addresses for the source's hosts, for all tools of the organization."""
    with transaction.atomic():
        _filter_hosts(source).update(may_be_private=False, opened_by_superuser=False)
        bump_tools_version(source.organization_id)


def list_active_sources(organization_id: int | None = None) -> Iterable[Source]:
    """List the active sources of one organization or of all, without their documents."""
    wanted = Q() if organization_id is None else Q(organization_id=organization_id)
    rows = Source.objects.filter(wanted, is_active=True).select_related("organization")
    return rows.defer("document").order_by("organization_id", "name")


def _filter_hosts(source: Source) -> QuerySet[AllowedHost]:
    return AllowedHost.objects.filter(
        organization_id=source.organization_id, host__in=_list_hosts(source)
    )


def _list_hosts(source: Source) -> frozenset[str]:
    """List the hosts in the source's valid addresses."""
    hosts = set()
    for address in filter(None, (source.address, source.base_url, source.token_url)):
        with suppress(ToolError):
            hosts.add(get_host(read_url(address)))
    return frozenset(hosts)


def _select_tools(
    found: SourceDescription,
) -> tuple[dict[str, DescribedTool], tuple[tuple[str, str], ...]]:
    """Return the tools that can be saved, by key, and the skipped tools with their reasons."""
    described: dict[str, DescribedTool] = {}
    skipped = list(found.skipped)
    for each in found.tools:
        if each.key in described:
            skipped.append((each.key, "it is described twice"))
        elif len(each.key) > MAX_KEY_LENGTH:
            skipped.append((f"{each.key[:60]}…", f"it is longer than {MAX_KEY_LENGTH} characters"))
        elif len(described) == MAX_TOOLS:
            skipped.append((each.key, f"only the first {MAX_TOOLS:,} tools are read"))
        else:
            described[each.key] = each
    return described, tuple(skipped)


def _lock_source(source: Source) -> Source:
    """Lock the source and return its current row, without its document.

    Raises:
        ToolError: OPERATION_FAILED, if the source was deleted or has changed since `source` was
            read.
    """
    rows = Source.objects.select_for_update(no_key=True).filter(pk=source.pk)
    same = {
        "address": source.address,
        "command": source.command,
        "authentication": source.authentication,
    }
    now = rows.filter(**same).defer("document").first()
    if now is not None and (
        source.address or source.is_mcp or rows.filter(document=source.document).exists()
    ):
        return now
    raise ToolError(
        ErrorCode.OPERATION_FAILED,
        "The source was changed during the refresh; refresh it again.",
        attempted=False,
    )


def _build_row(source: Source, each: DescribedTool, name: str) -> SourceTool:
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


def _is_outdated(row: SourceTool, each: DescribedTool) -> bool:
    is_other = row.hash != each.hash or row.inferred_level != each.inferred_level
    return (
        is_other
        or row.gone_at is not None
        or (row.title, row.tags) != (each.title[:200], list(each.tags))
    )


def _update_row(source: Source, row: SourceTool, each: DescribedTool) -> SourceTool:
    before, was_accepted = row.effective_level, not row.is_quarantined
    is_lowered = before.rank < Level(row.inferred_level).rank
    if was_accepted and not source.is_mcp and not is_lowered:
        row.accepted_hash = each.hash
    if row.hash != each.hash:
        row.plain_params = []  # an admin chose these for another definition
    if row.hash != each.hash or not source.is_mcp:
        row.level = _carry_over_level(row, each.inferred_level)
    if row.is_chosen and Level(row.level or each.inferred_level).rank < before.rank:
        row.level, row.accepted_hash = before.value, ""
    if was_accepted and row.accepted_hash != each.hash:
        row.accepted_definition = row.definition
    if row.hash != each.hash or not source.is_mcp:
        # An MCP server's definition is kept while its hash is the same: otherwise, by hiding the
        # tool for a while, the server could change what the hash leaves out.
        row.definition = dict(each.definition)
    row.title, row.tags = each.title[:200], list(each.tags)
    row.hash, row.inferred_level, row.gone_at = each.hash, each.inferred_level.value, None
    return row


def _carry_over_level(row: SourceTool, inferred: Level) -> str:
    """Return the admin's level after a change of the inferred level. A level below the old inferred
    level is reset; any other level can only rise."""
    before = Level(row.inferred_level)
    if not row.level or inferred is before:
        return row.level
    if Level(row.level).rank < before.rank:
        return ""
    return max(Level(row.level), inferred, key=lambda level: level.rank).value


def _set_choice(row: SourceTool, choice: ToolChoice) -> bool:
    """Set the choice on the row; return True if that changes anything."""
    before = _list_choices(row)
    if choice.seen == row.hash and row.gone_at is None:
        row.is_chosen, row.level = choice.is_chosen, choice.level
        row.named_params = row.named_params if choice.named is None else sorted(choice.named)
        row.plain_params = row.plain_params if choice.plain is None else sorted(choice.plain)
        has_seen_title = choice.seen_title in (None, row.title)
        if choice.is_chosen and has_seen_title and (row.is_quarantined or choice.accepts_title):
            row.accepted_title = row.title
        if choice.is_chosen:
            row.accepted_hash, row.accepted_definition = row.hash, {}
    elif not choice.is_chosen:
        row.is_chosen = False
    return before != _list_choices(row)


def _list_choices(row: SourceTool) -> list[Any]:
    return [getattr(row, name) for name in _CHOICE_FIELDS if name != "accepted_definition"]


def _reserve_name(wanted: str, taken: set[str]) -> str:
    """Reserve the wanted name, with a number appended if it is taken; tool names ignore case."""
    candidates = chain([wanted], (f"{wanted}_{number}" for number in count(2)))
    name = next(each for each in candidates if each.lower() not in taken)
    taken.add(name.lower())
    return name
