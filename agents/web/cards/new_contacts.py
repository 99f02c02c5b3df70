"""Contacts on a card that the organization has not used before."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast, Lower

from agents.accounts.models import Membership
from agents.approvals.marks import read_card
from agents.approvals.models import Approval, ApprovalStatus
from tools.contract.contacts import EMAIL, HOST, Contact
from tools.records.models import Record

MAX_CHECKED = 20
"""The most contacts checked for one card."""
MAX_EARLIER = 2_000
"""How many of the newest approved cards are searched."""
USED = (ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED)


def find_new_contacts(card: Approval) -> list[Contact]:
    """Find the contacts of the card that appear in no record, no approved card and no member's account."""
    contacts = list(read_card(card).contacts[:MAX_CHECKED])
    if not contacts:
        return []
    known = _find_known(card.organization_id, contacts)
    rest = [contact for contact in contacts if contact.value not in known]
    earlier = _list_earlier(card) if rest else Approval.objects.none()
    return [contact for contact in rest if not _is_used(earlier, contact)]


def _find_known(organization_id: int, contacts: Iterable[Contact]) -> set[str]:
    emails = [contact.value for contact in contacts if contact.kind == EMAIL]
    hosts = [contact.value for contact in contacts if contact.kind == HOST]
    records = Record.objects.filter(organization_id=organization_id).order_by()  # sorted, no index on addresses is used
    known: set[str] = set()
    if emails:
        with_email = records.annotate(lower=Lower("email")).filter(lower__in=emails)
        known.update(with_email.values_list("lower", flat=True).distinct())
        members = Membership.objects.filter(organization_id=organization_id).annotate(lower=Lower("user__email"))
        known.update(members.filter(lower__in=emails).values_list("lower", flat=True))
    if hosts:
        spelled = {name: host for host in hosts for name in (host, host.removeprefix("www."), f"www.{host}")}
        with_domain = records.annotate(lower=Lower("domain")).filter(lower__in=spelled)
        known.update(spelled[domain] for domain in with_domain.values_list("lower", flat=True).distinct())
    return known


def _list_earlier(card: Approval) -> QuerySet[Any]:
    used = Approval.objects.filter(organization_id=card.organization_id, status__in=USED).exclude(pk=card.pk)
    newest = used.order_by("-pk").values("pk")[:MAX_EARLIER]
    return Approval.objects.filter(pk__in=newest).annotate(text=Cast("params", TextField()))


def _is_used(earlier: QuerySet[Any], contact: Contact) -> bool:
    # SQLite stores letters beyond ASCII as escapes.
    escaped = json.dumps(contact.value)[1:-1]
    found = earlier.filter(text__icontains=contact.value)
    return (found if escaped == contact.value else found | earlier.filter(text__icontains=escaped)).exists()
