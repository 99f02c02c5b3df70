"""Schemas of cards, and of the results of bulk decisions."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from agents.runs.models import ApprovalKind, ApprovalStatus


class ValueFromOutside(BaseModel):
    """A value in a call's params that was first seen in a result from outside."""

    path: str = Field(
        description="The value's place in the params; entries of lists are numbered from 0."
    )
    value: str
    stands_out: bool = Field(
        description="The param names a recipient, destination, account, right, amount or command."
    )
    tool: str = Field(
        description="The tool of the call that brought the value, or stored it in an earlier run."
    )
    call_id: str | None
    run_id: str | None


class CardVote(BaseModel):
    """One person's approval of a card that needs more people."""

    by: str
    deputy_for: str | None = Field(description="The person on whose behalf a deputy approved.")


class CardMark(BaseModel):
    """One thing about a card that a person must see before approving it, such as mixed alphabets or
    a contact that is new here."""

    kind: str
    label: str
    detail: str = Field(description="The values and their places in words; may be empty.")


class ApprovalDetail(BaseModel):
    """One card: the effect of a call, sealed by its digest, and the decision about it."""

    id: str
    kind: ApprovalKind
    status: ApprovalStatus
    run_id: str
    employee_id: str
    call_id: str
    tool: str
    level: str
    params: dict[str, Any]
    digest: str
    sentence: str
    preview: dict[str, Any]
    why: str
    words: str = Field(
        description="The other system's own words about an unknown outcome, unverified."
    )
    from_outside: list[ValueFromOutside] = Field(
        description="Values from the web, connected sources or files."
    )
    marks: list[CardMark] = Field(
        description="What the page of a waiting card marks; `approve` may need their kinds as `seen_marks`. "
        "A decided card has those that stood on it then."
    )
    warning: str = Field(
        description="A warning to read before deciding; empty for most cards, and for decided ones."
    )
    confirm: str = Field(
        description="The text to send as `confirm` to approve; empty below destructive level."
    )
    claimed_by: str = Field(
        description="The username of a person who has taken the card; empty for nobody."
    )
    is_done: bool = Field(
        description="True if everything that the card asks for is already done; then dismiss the card."
    )
    broke_glass: bool = Field(
        description="True if an admin approved the card alone in an emergency, bypassing the approval rules."
    )
    needs: str = Field(
        description="The approvals that an approval rule still needs; empty if one approver decides."
    )
    still_needed: str = Field(description="The same as `needs`.")
    rules_applied: list[str] = Field(
        description="The approval rules that match, each with its name and the reason."
    )
    votes: list[CardVote] = Field(description="The approvals that count while more are needed.")
    approved_by: list[str] = Field(
        description="The people whose approvals count while more are needed."
    )
    requested_at: datetime
    expires_at: datetime
    decided_by: str | None
    decided_at: datetime | None
    reason: str
    bulk_id: UUID | None = Field(description="The bulk decision that the decision belongs to.")
    start_after: datetime | None = Field(description="The approval can be undone until then.")
    after: str | None = Field(
        description="The earlier call for whose success the start waits, of the same pass or before the delegation."
    )
    next_approval_id: str | None = Field(description="The card that replaced this one.")


class DecisionResult(BaseModel):
    """The result of one decision of a bulk request: the status and code that a request for it alone
    would get."""

    approval_id: str
    status: int = Field(examples=[200, 409])
    code: str
    detail: str


class DecisionResults(BaseModel):
    """One result for each decision, in the same order."""

    outcomes: list[DecisionResult]


class UndoneBulk(BaseModel):
    """The undo of a bulk approval. None of its other calls will start, and its cards are renewed
    one by one."""

    bulk_id: UUID
    cards: int = Field(description="Number of your approvals with this `bulk_id`.")
    started: int = Field(
        description="Cards whose calls had already started; final once `left` is 0."
    )
    waiting_again: int = Field(description="Undone cards, whose calls wait for a decision again.")
    left: int = Field(description="Cards that are not renewed yet; their calls will not start.")
    votes: int = Field(
        description="Your votes in the bulk on cards that needed more approvals; they no longer count."
    )
