"""Runs one call in a thread of its own, and waits for it."""

import time
from collections.abc import Callable

from agents.engine.connections import let_go, tool_thread
from agents.engine.starting import publish_progress
from agents.events import recording
from agents.models import ToolCall
from tools.contract import ToolResult
from tools.toolbox.executor import Batch, Finished, PreparedCall

LOOK_AGAIN_S = 1.0


def run_one(call: ToolCall, prepared: PreparedCall, late: Callable[[int, ToolResult], None] | None = None) -> Finished:
    """How the call ended, after its timeout at the latest; how far it has come is shown meanwhile.

    Args:
        late: told, in the call's thread, what it reports after it was given up.
    """
    batch = Batch(around=tool_thread, on_late=late)
    batch.start(prepared)
    let_go()
    while True:
        for report in batch.wait(time.monotonic() + LOOK_AGAIN_S):
            if isinstance(report, Finished):
                return report
            with recording(call.run_id) as record:
                publish_progress(record, call, report)
            let_go()
