"""Downloads of a run's transcript, streamed because a long run with large results would fill the
memory."""

from __future__ import annotations

from collections.abc import AsyncIterator

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from agents.accounts.models import Membership
from agents.platform.row_ids import get_row
from agents.runs.models import Run
from agents.web.panel.transcript import (
    JsonTranscript,
    MarkdownTranscript,
    load_result,
    read_entries,
)
from agents.web.sockets.database import database_to_async
from agents.web.views.pages import as_download, member_view


@member_view("GET")
def download_markdown(_request: HttpRequest, member: Membership, run_id: int) -> HttpResponseBase:
    """Download the transcript as Markdown."""
    return _download(member, run_id, MarkdownTranscript())


@member_view("GET")
def download_json(_request: HttpRequest, member: Membership, run_id: int) -> HttpResponseBase:
    """Download the transcript as JSON."""
    return _download(member, run_id, JsonTranscript())


def _download(
    member: Membership, run_id: int, writer: MarkdownTranscript | JsonTranscript
) -> HttpResponseBase:
    rows = Run.objects.filter(organization_id=member.organization_id).select_related(
        "employee__provider", "organization", "created_by", "parent__employee"
    )
    run = get_row(rows, run_id, "run")
    response = StreamingHttpResponse(
        _stream(run, writer.write_head(run), writer), content_type=writer.content_type
    )
    return as_download(response, f"run-{run.pk}.{writer.suffix}")


async def _stream(
    run: Run, head: str, writer: MarkdownTranscript | JsonTranscript
) -> AsyncIterator[bytes]:
    """Stream all entries so far; load a result in full, one at a time, if its event contains only a
    part of it."""
    read, read_whole = database_to_async(read_entries), database_to_async(load_result)
    after, until, seen = 0, run.next_event_seq - 1, set[int]()
    yield _encode(head)
    while entries := await read(run.pk, after, until, seen):
        for entry in entries:
            if entry.is_cut:
                entry.result = await read_whole(entry.call.pk)
            yield _encode(writer.write_entry(entry))
            entry.result = {}
        after = entries[-1].event.seq
    yield _encode(writer.write_foot())


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")
