"""Read the sealed content of a card: its targets and contacts, and the marks that it needs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agents.accounts.languages import get_languages
from agents.approvals.warnings.folding import Folding, Signs, plan_folding
from agents.approvals.warnings.imitations import find_imitation
from agents.approvals.warnings.marks import (
    ADDRESS,
    ALPHABETS,
    HIDDEN,
    IMITATION,
    LETTERS,
    LIKENESS,
    OUTSIDE,
    SPACES,
    Mark,
    build_marks,
)
from agents.approvals.warnings.meanings import Meaning, find_meanings
from agents.approvals.warnings.similar_names import CardNames, read_names
from agents.approvals.warnings.upward_paths import find_detour
from agents.employees.toolboxes import load_toolbox
from agents.platform.row_ids import parse_row_id_or_none
from agents.runs.models import Approval, ApprovalKind
from tools.caches import Cache
from tools.contract import NO_PREVIEW, Preview
from tools.contract.canonical import fingerprint
from tools.contract.contacts import (
    ACCOUNT,
    EMAIL,
    HOST,
    PUNYCODE,
    Contact,
    decode_host,
    describe_likeness,
    find_false_addresses,
    list_contacts,
    walk_texts,
)
from tools.contract.hidden_characters import (
    BLANK_LINES,
    EDGE_SPACES,
    MARKS_ON_ONE_LETTER,
    NATURAL_NO_BREAK,
    ODD_SPACES,
    SPACES_BEFORE_DOT,
    SPACES_BEFORE_ENDING,
    SPACES_BEYOND_INDENTATION,
    count_lines,
    find_hidden_characters,
    name_character,
    remove_natural_spaces,
    remove_ordinary,
)
from tools.contract.mixed_hosts import is_mixed_host
from tools.contract.odd_letters import MIXED, find_odd_parts
from tools.contract.odd_signs import find_odd_amount, has_odd_groups
from tools.contract.outside_text import name_place, quote_excerpt
from tools.contract.param_words import FILE_WORDS, NamedThing, find_named, split_name
from tools.contract.program_addresses import find_programs
from tools.registries.records import RECORD_STORE
from tools.toolbox.asked_actions import NOT_RUN_HERE
from tools.toolbox.provenance import Provenance, Sighting

MAX_COMPARED = 50
MAX_SHORT = 200
"""The maximum number of characters of a short value. Longer values are prose, in which surrounding
spaces and the product's words are common."""
_EXACT = frozenset({NamedThing.ACCOUNT, NamedThing.DESTINATION, NamedThing.COMMAND})
"""What is named by values in which no-break spaces between words are not ordinary."""
MOST_EXACT_WORDS = 8
"""The maximum number of words of such a value; a longer one is prose."""
_MAY_HIDE_HOST = re.compile(f"[%&\\\\]|{PUNYCODE}", re.IGNORECASE)
"""Matches the signs by which ASCII text shows that a host may contain non-ASCII letters."""


class AffectedRecord(NamedTuple):
    """A record that a card affects, in the state that the card shows.

    Attributes:
        written: the contacts that the call would write to the record.
    """

    pk: int
    label: str
    version: Any
    written: tuple[Contact, ...]


@dataclass(frozen=True)
class CardReading:
    """The content of a card, as findings and rules use it, read from its sealed parts.

    Attributes:
        marks: the marks of the content itself.
        contacts: the contacts that the call would write to a target or use.
        target_keys: a key for each target, the same on every card that affects this target.
        meanings: the values that mean more than they seem to, such as a word for “all”.
        folding: the plan of which values the card shows immediately and which it folds.
        names: the values that readers could take for a record's name.
        records: the records that the call affects.
        target_count: the number of targets of any kind.
        lacks_preview: True if the tool's preview failed or took too long, so that the effect of the
            call is unknown.
        runs_elsewhere: True if an agent carries out the action itself.
        is_done: True if the card says that its effect already exists.
    """

    marks: tuple[Mark, ...]
    contacts: tuple[Contact, ...]
    target_keys: frozenset[str]
    meanings: tuple[Meaning, ...] = ()
    folding: Folding = field(default_factory=Folding)
    names: CardNames = field(default_factory=CardNames)
    records: tuple[AffectedRecord, ...] = ()
    target_count: int = 0
    lacks_preview: bool = False
    runs_elsewhere: bool = False
    is_done: bool = False

    @property
    def folds_parts(self) -> bool:
        """True if the card folds a part, which must be opened before approval."""
        return self.folding.folds_parts


MAX_CACHED = 4_000
_Key = tuple[int, str, frozenset[str]]
_READINGS: Cache[_Key, CardReading] = Cache(MAX_CACHED)
"""The readings of cards, by organization, digest and the languages that the organization writes."""

_PARAMS: Cache[_Key, tuple[Mark, ...]] = Cache(MAX_CACHED)
"""The marks of params, by organization, fingerprint and the languages that it writes."""


def read_card(approval: Approval) -> CardReading:
    """Read the card's sealed content; cached by digest and the organization's languages.

    Runs a query only in a process that has not read the organization's row yet.
    """
    languages = get_languages(approval.organization_id)
    key = (approval.organization_id, approval.digest, languages)
    return _READINGS.get_or_load(key, lambda: _read(approval, languages))


def read_cards(organization_id: int, digests: Mapping[int, str]) -> dict[int, CardReading]:
    """Read many cards by id, with one query for the content of those that are not cached.

    Args:
        digests: the digests loaded with a list, by card id.
    """
    languages = get_languages(organization_id)
    found = {
        pk: _READINGS.get((organization_id, digest, languages)) for pk, digest in digests.items()
    }
    unread = [pk for pk, reading in found.items() if reading is None]
    rows = (
        Approval.objects.filter(organization_id=organization_id)
        .select_related("tool_call")
        .in_bulk(unread)
    )
    fresh = {pk: read_card(row) for pk, row in rows.items()}
    return {pk: reading for pk in digests if (reading := fresh.get(pk) or found[pk]) is not None}


def read_all(cards: Collection[Approval]) -> dict[int, CardReading]:
    """Read the sealed content of these cards of one organization, by card id. If contents were not
    loaded with the cards and are not cached, one query loads them."""
    unloaded = {card.pk: card.digest for card in cards if "preview" in card.get_deferred_fields()}
    found = read_cards(next(iter(cards)).organization_id, unloaded) if unloaded else {}
    return found | {card.pk: read_card(card) for card in cards if card.pk not in unloaded}


def find_params_marks(organization_id: int, params: Any) -> tuple[Mark, ...]:
    """Find the marks that follow from the texts of params alone, without a card or a record to
    compare them with, and without a query; cached."""
    languages = get_languages(organization_id)
    key = (organization_id, fingerprint(params), languages)
    return _PARAMS.get_or_load(key, lambda: build_marks(_inspect(walk_texts(params), languages)[0]))


def get_family(approval: Approval) -> str:
    """Return the first part of the tool's name, which names the kind of its targets: `data`,
    `files`."""
    return approval.tool_call.tool.partition(".")[0]


def is_about_records(approval: Approval) -> bool:
    """Return True if the targets of the card's call are records."""
    return get_family(approval) == RECORD_STORE.get().tool_family


def get_preview(approval: Approval) -> dict[str, Any]:
    """Return the card's preview; empty if somebody has changed it in the database to something
    other than an object."""
    return approval.preview if isinstance(approval.preview, dict) else {}


def get_targets(approval: Approval) -> list[dict[str, Any]]:
    """Return the targets in the card's preview."""
    targets = get_preview(approval).get("targets")
    return (
        [target for target in targets if isinstance(target, dict)]
        if isinstance(targets, list)
        else []
    )


def is_done(preview: dict[str, Any]) -> bool:
    """Return True if every target of a stored preview already has the wanted values."""
    try:
        return Preview.from_json(preview).is_done
    except (AttributeError, KeyError, TypeError):
        return False  # somebody changed the preview in the database


def _read(approval: Approval, languages: frozenset[str]) -> CardReading:
    targets = get_targets(approval)
    written = [
        approval.params,
        *({"name": each.get("label"), "after": each.get("after")} for each in targets),
    ]
    contacts = list_contacts([approval.params, *(each.get("after") for each in targets)])
    if approval.kind == ApprovalKind.QUESTION:
        return CardReading((), contacts, frozenset())
    shown = [*written, *(each.get("before") for each in targets)]
    found, doubtful = _inspect(walk_texts(shown), languages)
    each_written = _list_written(targets, contacts)
    found.setdefault(LIKENESS, []).extend(_compare_contacts(targets, each_written))
    family, problem = get_family(approval), get_preview(approval).get("problem", "")
    meanings = _find_meanings(approval, [] if problem else targets)
    for each in meanings:
        found.setdefault(each.kind, []).append(each.detail)
    outside = _list_outside(approval)
    found[OUTSIDE] = [
        f"{name_place(each.path)}{quote_excerpt(each.value)}" for each in outside if each.stands_out
    ]
    named = {
        place.rpartition(".")[2]
        for place in (
            *(contact.field for contact in contacts),
            *(sighting.param for sighting in outside),
        )
    }.union(*(each.names for each in meanings))
    return CardReading(
        marks=build_marks(found),
        contacts=contacts,
        target_keys=frozenset(
            f"{family} {each.get('id') or each.get('label')}" for each in targets
        ),
        meanings=meanings,
        folding=plan_folding(
            approval.sentence,
            [] if problem else targets,
            approval.params,
            Signs(named - {""}, frozenset(doubtful)),
        ),
        names=read_names(targets, approval.params),
        records=tuple(_list_records(targets, each_written)) if is_about_records(approval) else (),
        target_count=len(targets),
        lacks_preview=problem not in ("", NO_PREVIEW, NOT_RUN_HERE),
        runs_elsewhere=problem == NOT_RUN_HERE,
        is_done=is_done(get_preview(approval)),
    )


def _find_meanings(approval: Approval, targets: list[dict[str, Any]]) -> tuple[Meaning, ...]:
    if not isinstance(approval.params, dict):
        return ()  # somebody changed the database
    call = approval.tool_call
    tool = load_toolbox(approval.organization_id).get_called_tool(call.tool, call.version)
    return tuple(find_meanings(approval.params, targets, tool))


def _list_written(
    targets: list[dict[str, Any]], contacts: tuple[Contact, ...]
) -> list[tuple[Contact, ...]]:
    """List the contacts that would be written to each target; of several targets, only the first 50
    are listed."""
    if len(targets) == 1:
        return [contacts]
    return [list_contacts(each.get("after")) for each in targets[:MAX_COMPARED]]


def _list_outside(approval: Approval) -> list[Sighting]:
    try:
        return Provenance.from_json(approval.tool_call.provenance).list_outside()
    except (AttributeError, KeyError, TypeError):
        return []  # somebody changed the origins in the database


def _list_records(
    targets: list[dict[str, Any]], each_written: list[tuple[Contact, ...]]
) -> Iterator[AffectedRecord]:
    for index, target in enumerate(targets):
        row_id = parse_row_id_or_none(str(target.get("id")))
        if row_id is not None:
            written = each_written[index] if index < len(each_written) else ()
            yield AffectedRecord(row_id, str(target.get("label")), target.get("version"), written)


def _inspect(
    texts: Iterable[tuple[str, str]], languages: frozenset[str]
) -> tuple[dict[str, list[str]], set[str]]:
    """Inspect texts, each with the name of its field. Return the details that were found, by kind
    of mark, and the texts that have them."""
    found: dict[str, list[str]] = {}
    doubtful: set[str] = set()
    for name, text in dict.fromkeys(texts):
        for kind, detail in _inspect_text(name, text, languages):
            found.setdefault(kind, []).append(detail)
            doubtful.add(text)
    return found, doubtful


def _inspect_text(field: str, text: str, languages: frozenset[str]) -> Iterator[tuple[str, str]]:
    where = name_place(field)
    is_plain = text.isascii() and text.isprintable()
    if not is_plain:
        yield from ((HIDDEN, where + detail) for detail in _describe_hidden(text, languages))
    yield from ((SPACES, where + detail) for detail in _describe_spaces(field, text))
    yield from ((kind, where + detail) for kind, detail in _describe_odd(field, text, languages))
    yield from ((ADDRESS, where + detail) for detail in find_false_addresses(text))
    yield from ((ADDRESS, where + detail) for detail in find_programs(field, text))
    if detour := find_detour(field, text):
        yield ADDRESS, f"{where}{quote_excerpt(text)} {detour}"
    if not is_plain or _MAY_HIDE_HOST.search(text):
        contacts = list_contacts(text)
        yield from (
            (ADDRESS, f"{where}{quote_excerpt(one.value)}")
            for one in contacts
            if PUNYCODE in one.value
        )
        yield from (
            (ALPHABETS, where + detail) for detail in _describe_mixed_hosts(contacts, languages)
        )
    if len(text) <= MAX_SHORT and (words := find_imitation(text)):
        yield IMITATION, f"{where}{quote_excerpt(words)}"


def _describe_odd(field: str, text: str, languages: frozenset[str]) -> Iterator[tuple[str, str]]:
    parts = find_odd_parts(text, languages, is_name=not field)
    for part in parts:
        excerpt = quote_excerpt(text[max(0, part.start - 10) : part.end + 10])
        if part.kind == MIXED:
            yield ALPHABETS, excerpt
        else:
            yield LETTERS, f"{part.kind} in {excerpt}"
    if parts or find_named(field) != NamedThing.AMOUNT:
        return
    if find_odd_amount(text, languages):
        yield LETTERS, f"letters or signs that are read as others in {quote_excerpt(text)}"
    elif has_odd_groups(text):
        yield LETTERS, f"digits in unusual groups in {quote_excerpt(text)}"


def _describe_hidden(text: str, languages: frozenset[str]) -> Iterator[str]:
    counts = Counter(remove_ordinary(text, languages))
    for char in sorted(find_hidden_characters(text.replace("\r\n", "\n"), languages=languages)):
        yield f"{name_character(char)} U+{ord(char):04X}, {_count_times(counts[char])}"
    if found := MARKS_ON_ONE_LETTER.search(text):
        yield f"{len(found[1]) + len(found[2]):,} combining marks on one letter"


def _describe_spaces(field: str, text: str) -> Iterator[str]:
    if not ODD_SPACES.isdisjoint(text):
        is_exact = not field or (
            find_named(field) in _EXACT and len(text.split()) <= MOST_EXACT_WORDS
        )
        rest = NATURAL_NO_BREAK.sub("", text) if is_exact else remove_natural_spaces(text)
        yield from (
            f"{name_character(char)} U+{ord(char):04X}, {_count_times(count)}"
            for char, count in Counter(rest).items()
            if char in ODD_SPACES
        )
    if found := BLANK_LINES.search(text):
        yield f"{count_lines(found[0]):,} blank lines in a row"
    is_file = not FILE_WORDS.isdisjoint(split_name(field))
    is_line = (is_file or len(text) <= MAX_SHORT) and "\n" not in text
    before_dot = SPACES_BEFORE_DOT if is_file else SPACES_BEFORE_ENDING
    if found := SPACES_BEYOND_INDENTATION.search(text):
        yield f"{len(found[0]):,} spaces in a row"
    elif is_line and (found := before_dot.search(text)):
        yield f"{len(found[0]):,} spaces before {quote_excerpt(text[found.end() :])}"
    for found in EDGE_SPACES.finditer(text) if is_line else ():
        side = "start" if found.start() == 0 else "end"
        yield f"spaces at the {side} of {quote_excerpt(text.strip())}: {len(found[0]):,}"


def _describe_mixed_hosts(contacts: Sequence[Contact], languages: frozenset[str]) -> Iterator[str]:
    for contact in contacts:
        host = decode_host(contact.value.rpartition("@")[2])
        if contact.kind in (HOST, EMAIL) and is_mixed_host(host, languages):
            yield quote_excerpt(host)


def _compare_contacts(
    targets: list[dict[str, Any]], each_written: Sequence[tuple[Contact, ...]]
) -> Iterator[str]:
    """Compare the contacts that would be written to each target with the target's contacts on the
    card."""
    for target, written in zip(targets, each_written, strict=False):
        named = {"domain": target.get("label"), "after": target.get("before")}
        current = list_contacts(named)
        yield from compare_contacts(written[:MAX_COMPARED], current[:MAX_COMPARED])


def compare_contacts(written: Sequence[Contact], current: Sequence[Contact]) -> Iterator[str]:
    """Describe each written host, email address and account number that resembles a current one."""
    hosts = {_find_host(contact): None for contact in current if contact.kind != ACCOUNT}
    known = {contact.value for contact in current} | set(hosts)
    for contact in written:
        if contact.value in known:
            continue
        others = [each.value for each in current if each.kind == contact.kind]
        alike = list(_list_alike(contact, others)) if contact.kind in (EMAIL, ACCOUNT) else []
        yield from alike
        host = "" if alike else _find_host(contact)
        for other in hosts if host and host not in known else ():
            if other and (likeness := describe_likeness(decode_host(host), decode_host(other))):
                yield f"{quote_excerpt(host)} {likeness} {quote_excerpt(other)}"


def _list_alike(contact: Contact, others: Sequence[str]) -> Iterator[str]:
    for other in others:
        likeness = describe_likeness(contact.value, other, is_number=contact.kind == ACCOUNT)
        if likeness and (contact.kind == ACCOUNT or likeness.startswith("looks")):
            yield f"{quote_excerpt(contact.value)} {likeness} {quote_excerpt(other)}"


def _find_host(contact: Contact) -> str:
    return contact.value.rpartition("@")[2] if contact.kind in (HOST, EMAIL) else ""


def _count_times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
