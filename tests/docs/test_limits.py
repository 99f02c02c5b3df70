"""The pages state the limits that the code has."""

import pytest

from agents.api.auth import MAX_INVALID_TOKENS_PER_MINUTE
from agents.gateway.keys import MAX_REQUESTS_PER_MINUTE
from agents.gateway.queries import MAX_CALLS_OF_A_RUN
from agents.mcp_server.door import LARGEST_BODY, MAX_WRONG_KEYS_PER_MINUTE
from agents.mcp_server.results import SHORT
from agents.runs.engine.timing import MAX_OPEN_TICKETS
from agents.triggers.changes import MAX_QUEUED, MAX_TRIGGERS
from agents.triggers.models import Trigger
from agents.triggers.receiving import LARGEST_PAYLOAD, MAX_PER_MINUTE
from tests.docs.pages import DOCS

QUEUED = Trigger._meta.get_field("max_queued").default


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        (
            "settings",
            (
                f"{MAX_REQUESTS_PER_MINUTE:,} requests per agent key, {MAX_PER_MINUTE:,} messages per "
                f"[trigger](triggers.md), {MAX_INVALID_TOKENS_PER_MINUTE} wrong API tokens and "
                f"{MAX_WRONG_KEYS_PER_MINUTE} wrong agent keys per address."
            ),
        ),
        ("triggers", f"larger than {LARGEST_PAYLOAD // 1024} KB |"),
        ("triggers", f"more than {MAX_PER_MINUTE:,} messages in 60 seconds at one web process"),
        ("triggers", f"about {QUEUED} runs of a trigger may wait"),
        ("triggers", f"can set 1 to {MAX_QUEUED:,}. An organization can have {MAX_TRIGGERS} trig"),
        (
            "connect-an-agent",
            (
                f"{MAX_REQUESTS_PER_MINUTE:,} requests in any 60 seconds for each key and web process, "
                f"{LARGEST_BODY // 1_000_000} MB for each request, {MAX_OPEN_TICKETS} open tickets"
            ),
        ),
        ("connect-an-agent", f"Another run starts after {MAX_CALLS_OF_A_RUN} calls"),
        ("connect-an-agent", f"holds at most about {SHORT:,} characters"),
    ],
)
def test_the_page_states_the_limit_that_is_set_in_the_code(page: str, sentence: str) -> None:
    assert sentence in " ".join((DOCS / f"{page}.md").read_text(encoding="utf-8").split())
