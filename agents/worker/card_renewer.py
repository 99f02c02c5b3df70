"""The thread that renews the cards of withheld bulks, so that people who undo a bulk do not wait
for the renewal."""

from agents.approvals.withheld_bulks import renew_some
from agents.worker.notice_sender import RepeatingThread


def build_card_renewer() -> RepeatingThread:
    """Build the thread; if its worker is killed, the threads of other workers continue the work."""
    return RepeatingThread("renew-cards", renew_some, lambda: None)
