"""A call's line labels its inputs and shows the names of records, but never those of another
organization's records."""

from __future__ import annotations

import re

import pytest

from agents.runs.models import Run
from agents.web.panel.lines import render_lines
from tests.features import feature
from tests.web.run_events import add_events, build_tool_start
from tests.world import UPDATE, World
from tools.office.records.models import Record

pytestmark = pytest.mark.django_db


def read_line(run: Run, world: World, tool: str = UPDATE, **params: object) -> tuple[str, str]:
    """Return the short text of a call's line, and the text of its unfolded inputs."""
    call = world.call(run, tool, level="write", params=params)
    html = render_lines(run.pk, add_events(run, build_tool_start(call))[-1:])[0].html
    brief = (
        html.split('class="call-brief">')[1]
        .split("</summary>")[0]
        .split('<span class="call-time">')[0]
    )
    inputs = html.split("<h4>Inputs</h4>")[1].split("</table>")[0]
    brief, inputs = (" ".join(re.sub(r"<[^>]+>", " ", part).split()) for part in (brief, inputs))
    return brief, inputs


@feature(
    "The gate",
    "Inputs of calls have labels, and records have names",
    "agents/web/panel/call_inputs.py",
    whole_file=True,
)
def test_a_record_is_named_and_params_are_labeled(world: World) -> None:
    pk = str(world.records[0].pk)
    brief, inputs = read_line(world.run(), world, record_id=pk, changes={"status": "inactive"})
    assert brief == f"Acme Corp #{pk} · Changes: status: inactive"
    assert inputs.startswith(f"Record id Acme Corp #{pk} Changes status")


def test_three_of_many_records_are_named_and_the_others_are_counted(world: World) -> None:
    ids = [str(record.pk) for record in world.records]
    more = [str(10**6 + number) for number in range(4)]
    brief, _ = read_line(
        world.run(), world, "data.bulkUpdate", record_ids=[*ids, *more], changes={"region": "EU"}
    )
    assert (
        brief
        == f"Acme Corp #{ids[0]} , Initech #{ids[1]} , Umbrella #{ids[2]} and 4 more · Changes: region: EU"
    )


def test_a_record_of_another_organization_is_not_named(world: World) -> None:
    theirs = Record.objects.create(organization=world.globex, name="Secret of Globex")
    brief, inputs = read_line(
        world.run(), world, record_id=str(theirs.pk), changes={"status": "inactive"}
    )
    assert brief.startswith(f"#{theirs.pk} ·")
    assert "Secret" not in brief + inputs


def test_names_are_escaped(world: World) -> None:
    Record.objects.filter(pk=world.records[0].pk).update(name="<b>Bold</b>")
    call = world.call(
        world.run(), UPDATE, level="write", params={"record_id": str(world.records[0].pk)}
    )
    html = render_lines(call.run_id, add_events(call.run, build_tool_start(call)))[0].html
    assert "<b>Bold" not in html
    assert "&lt;b&gt;Bold" in html
