"""The path of a run through the engine: the number of calls from one of its files into another."""

from agents.runs.engine.loop import advance
from agents.runs.models import RunStatus
from tests.hops import count_returns, describe_hops, is_engine, read_once, record_hops
from tests.workshop import Workshop, again, asking, call

MAX_HOPS = 60
MAX_HOPS_OF_A_READER = 40
MAX_RETURNS = 3


def test_a_driver_reaches_the_end_of_a_run_in_few_hops(workshop: Workshop) -> None:
    """The run asks its model, runs a read, and asks again for the answer, with warm caches."""
    workshop.play(asking(call("probe.clock")))
    workshop.work()
    run = workshop.submit()
    driven = record_hops(lambda: advance(run.pk), is_engine)
    assert again(run).status == RunStatus.SUCCEEDED
    assert len(driven) < MAX_HOPS, describe_hops(driven)
    read = read_once(driven)
    assert len(read) < MAX_HOPS_OF_A_READER, describe_hops(read)
    assert max(count_returns(read).values()) <= MAX_RETURNS, describe_hops(read)
