"""Check organizations' audit chains for faults, as `manage.py verify_audit` does."""

from agents.accounts.audit import read_chain
from agents.accounts.models import Organization


def verify_audit(organization_id: int) -> list[str]:
    """Verify the whole chain of an organization; return a sentence for each fault."""
    return read_chain(Organization.objects.get(pk=organization_id)).faults


def verify_audits() -> dict[str, list[str]]:
    """Return the faults of every organization's chain, by slug."""
    return {each.slug: read_chain(each).faults for each in Organization.objects.all()}
