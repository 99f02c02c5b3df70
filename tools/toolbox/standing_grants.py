"""Standing grants, which approve cards in a person's name by their terms, and do not change
verdicts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tools.contract import Level
from tools.contract.param_naming import DESCRIPTIONS, FirstNaming, Naming
from tools.contract.value_shapes import is_name
from tools.toolbox.conditions import OF_GRANTS, Condition, Rule
from tools.toolbox.grant_conditions import EarlierFacts, find_broken, list_value_paths
from tools.toolbox.grant_sources import is_fixing
from tools.toolbox.objections import Objection
from tools.toolbox.permissions import Cause, CauseKind
from tools.toolbox.provenance import Provenance, SeenIn
from tools.toolbox.value_readings import Reading

COMPARISONS = frozenset(
    {Rule.EQUALS, Rule.ONE_OF, Rule.MINIMUM, Rule.MAXIMUM, Rule.PREFIX, Rule.HOST}
)
RULES = COMPARISONS | OF_GRANTS
"""The rules that conditions of a standing grant may have."""
OPEN_RULES = frozenset({Rule.PREFIX, Rule.HOST, Rule.EACH})
"""Rules that fix only a part of the value; EACH also does, unless its own rule fixes the
entries."""
GRANTABLE = frozenset({CauseKind.LEVEL, CauseKind.HOSTS, CauseKind.UNSEEN_TEXT})
"""Causes that a standing grant can approve; limits, raised levels and own data need a person."""


@dataclass(frozen=True)
class GrantTerms:
    """The terms of one standing grant.

    Attributes:
        definition: the hash of the tool's definition.
        account: a hash of the account that the tool uses.
        employee_id, run_id: the only employee and the only run that the grant is for; None for all.
        params: the paths of the params that a call may have; params without a condition are free.
    """

    pk: int
    tool: str
    definition: str
    level: Level
    account: str
    params: frozenset[str]
    conditions: tuple[Condition, ...] = ()
    employee_id: int | None = None
    run_id: int | None = None

    @property
    def free_params(self) -> frozenset[str]:
        """The paths of the params that have no condition."""
        return self.params - {condition.param for condition in self.conditions}

    def read_as(self, reading: Reading) -> "GrantTerms":
        """Return the terms with conditions that read values as in this version."""
        return replace(
            self, conditions=tuple(replace(each, reading=reading) for each in self.conditions)
        )


@dataclass(frozen=True)
class AskingCall:
    """A call that needs approval, with everything that a standing grant's approval depends on.

    Attributes:
        provenance: where the values of the params were seen before; None if that is not known.
        naming: tells which params name something, so that they need a condition.
        defaults: the paths at which null is the tool's default and so has no meaning; None for a
            call that was recorded when every null was treated as absent.
        facts: what the run had seen before the call; None if that is not known.
    """

    tool: str
    definition: str
    level: Level
    account: str
    employee_id: int
    run_id: int
    params: Mapping[str, Any]
    causes: tuple[Cause, ...]
    provenance: Provenance | None = None
    naming: Naming = field(default_factory=FirstNaming)
    defaults: frozenset[str] | None = frozenset()
    facts: EarlierFacts | None = None

    def list_paths(self) -> frozenset[str] | None:
        """List the paths of all values that have a meaning; None if a name is ambiguous."""
        return list_value_paths(self.params, self.defaults)


def grants_for(call: AskingCall, grants: Iterable[GrantTerms]) -> list[GrantTerms]:
    """Return the standing grants that approve the call, in order; an empty list if a person must
    decide."""
    return [grant for grant in grants if find_mismatch(call, grant) is None]


def find_mismatch(call: AskingCall, grant: GrantTerms) -> Objection | None:
    """Find the reason why the grant does not approve the call; None if it does."""
    return (
        find_need_of_person(call)
        or _find_other_call(call, grant)
        or _find_unfit_params(call, grant)
    )


def find_need_of_person(call: AskingCall) -> Objection | None:
    """Find the reason why no standing grant can approve the call; None if one could."""
    if call.level is Level.DESTRUCTIVE:
        return Objection("a person decides every destructive call")
    for cause in call.causes:
        if cause.kind not in GRANTABLE:
            return Objection(cause.text)
    return None if call.causes else Objection("the call needs no approval")


def find_end(call: AskingCall, grant: GrantTerms) -> Objection | None:
    """Find the change that has permanently ended the grant; None if there is none."""
    is_raised = any(cause.kind is CauseKind.RAISED_LEVEL for cause in call.causes)
    return find_change(
        grant, call.definition, call.account, call.level if is_raised else grant.level
    )


def find_change(grant: GrantTerms, definition: str, account: str, level: Level) -> Objection | None:
    """Find the first part of the tool that differs from what the grant's maker saw, or None."""
    if grant.definition != definition:
        return Objection("The tool’s definition has changed.")
    if grant.account != account:
        return Objection("The account that the tool acts with has changed.")
    return None if grant.level is level else Objection("An admin has raised the tool’s level.")


def _find_other_call(call: AskingCall, grant: GrantTerms) -> Objection | None:
    if grant.tool != call.tool or grant.employee_id not in (None, call.employee_id):
        return Objection("the grant is for another tool or employee")
    if grant.run_id not in (None, call.run_id):
        return Objection("the grant is for another run")
    if grant.definition != call.definition or grant.level is not call.level:
        return Objection("the tool's definition or level has changed")
    return (
        None
        if grant.account == call.account
        else Objection("the account that the tool uses has changed")
    )


def _find_unfit_params(call: AskingCall, grant: GrantTerms) -> Objection | None:
    paths = call.list_paths()
    if paths is None or not paths <= grant.params:
        return Objection("the call has parameters that the grant does not allow")
    if (broken := find_broken(grant.conditions, call.params, call.facts)) is not None:
        return broken
    if free := call.naming.find_naming(grant.free_params, call.params):
        return Objection(f"{min(free)} {DESCRIPTIONS[free[min(free)]]}, and has no condition")
    return _find_outside(call, grant)


def is_explained(call: AskingCall, grant: GrantTerms) -> bool:
    """Return True if the grant fixes each recipient, destination and amount that comes from
    outside, or fixes its source."""
    known = call.provenance
    if known is None or not known.is_complete:
        return False
    fixed = {condition.param for condition in grant.conditions if is_fixing(condition)}
    return all(
        any(each.param == param or each.param.startswith(f"{param}.") for param in fixed)
        for each in known.list_outside()
        if each.stands_out
    )


def _find_outside(call: AskingCall, grant: GrantTerms) -> Objection | None:
    """Find an open param with a value from outside or of unknown origin, or with an invented
    name."""
    named = {condition.param for condition in grant.conditions if condition.rule in OPEN_RULES}
    is_fixed = {condition.param for condition in grant.conditions if is_fixing(condition)}
    open_params = grant.free_params | (named - is_fixed)
    if not open_params:
        return None
    known = call.provenance
    if known is None or not known.is_complete:
        return Objection("the origin of the call's values is not known")
    for param in sorted(open_params):
        is_free = param in grant.free_params
        if known.find_outside(param, counts_fields=not is_free) is not None:
            return Objection(f"{param} comes from outside")
        if is_free and call.defaults is not None and _is_invented(known, param):
            return Objection(f"{param} names something that was not seen before")
    return None


def _is_invented(known: Provenance, param: str) -> bool:
    """Return True if a value in the param, or inside it, was not seen before and names something;
    in older recordings, only whole values are considered."""
    names = [
        *known.unseen_names,
        *(
            each.param
            for each in known.sightings
            if each.origin is SeenIn.NOWHERE and is_name(each.value)
        ),
    ]
    return any(name == param or name.startswith(f"{param}.") for name in names)
