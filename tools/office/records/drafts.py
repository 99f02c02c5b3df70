"""Storage of drafts, with one draft for each call."""

from dataclasses import dataclass

from django.db import transaction

from tools.office.records.models import Draft


@dataclass(frozen=True)
class NewDraft:
    """A draft to store; without an idempotency key, it is always stored as a new draft."""

    organization_id: int
    kind: Draft.Kind
    title: str
    body: str
    record_ids: tuple[int, ...] = ()
    employee: str = ""
    run_id: str = ""
    idempotency_key: str = ""


def store_draft(new: NewDraft) -> Draft:
    """Store the draft and return it; if the call is repeated, return the draft that it has already
    created."""
    values = {
        "kind": new.kind,
        "title": new.title,
        "body": new.body,
        "employee": new.employee[:200],
        "run_id": new.run_id,
    }
    with transaction.atomic():
        if new.idempotency_key:
            draft, is_new = Draft.objects.get_or_create(
                organization_id=new.organization_id,
                idempotency_key=new.idempotency_key,
                defaults=values,
            )
        else:
            draft, is_new = (
                Draft.objects.create(organization_id=new.organization_id, **values),
                True,
            )
        if is_new:
            draft.records.set(new.record_ids)
    return draft
