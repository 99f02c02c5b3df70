"""Open the simulator from the form of an approval rule."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from agents.accounts.membership import load_session_member
from agents.accounts.models import Membership, Role
from agents.admin.scope import get_user
from agents.approval_rules.models import ApprovalRule
from agents.platform.refusals import Forbidden, Invalid
from agents.policy.policy_drafts import ChangeKind, PolicyChange
from agents.web.views.simulator import show_simulation
from tools.toolbox.approval_rules import RuleTerms


def simulate_form(request: HttpRequest, rule: ApprovalRule) -> HttpResponse:
    """Simulate the rule as entered in its form.

    Raises:
        Forbidden: the person does not currently use Gadget as an admin of the rule's organization.
        Invalid: the rule does not change anything, or its conditions cannot be read.
    """
    return show_simulation(request, _find_member(request, rule), _build_change(rule))


def build_removal_address(rule: ApprovalRule) -> str:
    """Return the address that simulates the removal of the rule."""
    return f"{reverse('simulator')}?{urlencode({'changes': json.dumps([_build_removal(rule).as_json()])})}"


def _find_member(request: HttpRequest, rule: ApprovalRule) -> Membership:
    """Return the session's membership, which the simulator's pages use too.

    Raises:
        Forbidden: the person has no membership, or is not an admin of the rule's organization.
    """
    member = load_session_member(get_user(request), request.session)
    if (
        member is None
        or member.organization_id != rule.organization_id
        or not member.may(Role.ADMIN)
    ):
        raise Forbidden(
            f"To simulate this rule, open Gadget as an admin of {rule.organization}, and try again."
        )
    return member


def _build_change(rule: ApprovalRule) -> PolicyChange:
    """Return the change that saving this row would make."""
    if not rule.is_active and rule.pk is None:
        raise Invalid(
            "is_active",
            "A new rule that is not active changes nothing. Tick “Active” to simulate it.",
        )
    if not rule.is_active:
        return _build_removal(rule)
    try:
        terms = rule.as_terms()
    except (TypeError, ValueError) as error:
        raise Invalid(
            "conditions", "The conditions of this rule cannot be read, so it cannot be simulated."
        ) from error
    return PolicyChange(ChangeKind.APPROVAL_RULE, rule=replace(terms, id=rule.pk or 0))


def _build_removal(rule: ApprovalRule) -> PolicyChange:
    return PolicyChange(ChangeKind.NO_APPROVAL_RULE, rule=RuleTerms(rule.pk, rule.name))
