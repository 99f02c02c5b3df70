"""The thread that renews the cards of withheld bulks, so that the undo responds at once."""

from agents.approvals.withheld_bulks import renew_some
from agents.worker.notice_sender import RepeatingThread


def build_card_renewer() -> RepeatingThread:
    """Build the thread; any other worker continues after a killed one."""
    return RepeatingThread("renew-cards", renew_some, lambda: None)
