"""The thread that renews the cards of withheld bulks, so that people do not wait for it when they
undo a bulk."""

from agents.approvals.withheld_bulks import renew_some
from agents.worker.notice_sender import RepeatingThread


def build_card_renewer() -> RepeatingThread:
    """Build the thread; if its worker is killed, those of other workers continue."""
    return RepeatingThread("renew-cards", renew_some, lambda: None)
