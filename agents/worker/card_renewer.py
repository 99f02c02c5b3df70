"""The thread that renews the cards of withheld bulks, so that their undo answers at once."""

from agents.approvals.withheld_bulks import renew_some
from agents.worker.notice_sender import RepeatingThread


def build_card_renewer() -> RepeatingThread:
    """Build the thread; what a killed worker leaves is renewed by any other, or by its successor."""
    return RepeatingThread("renew-cards", renew_some, lambda: None)
