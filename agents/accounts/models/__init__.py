"""Rows of organizations, their members and credentials, and the audit."""

from .audit import AuditEntry, AuditHead
from .credential import Credential
from .invitation import Invitation, PasswordReset
from .organization import ApiToken, Membership, Organization, Role

__all__ = [
    "ApiToken",
    "AuditEntry",
    "AuditHead",
    "Credential",
    "Invitation",
    "Membership",
    "Organization",
    "PasswordReset",
    "Role",
]
