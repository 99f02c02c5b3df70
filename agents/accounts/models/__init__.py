"""The models of organizations, their members and credentials, and the audit."""

from agents.accounts.models.audit import AuditEntry, AuditHead
from agents.accounts.models.credential import Credential
from agents.accounts.models.invitation import Invitation, PasswordReset
from agents.accounts.models.organization import DECIDERS, ApiToken, Membership, Organization, Role
from agents.accounts.models.organization_event import OrganizationEvent
from agents.accounts.models.preferences import Preferences, Units

__all__ = [
    "DECIDERS",
    "ApiToken",
    "AuditEntry",
    "AuditHead",
    "Credential",
    "Invitation",
    "Membership",
    "Organization",
    "OrganizationEvent",
    "PasswordReset",
    "Preferences",
    "Role",
    "Units",
]
