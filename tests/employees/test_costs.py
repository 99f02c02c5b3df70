"""The cost of runs: tokens times prices, in whole millionths of the currency."""

from __future__ import annotations

import pytest

from agents.runs.models import Run
from tests.features import feature
from tests.model_responses import Call, Response
from tests.model_server import ModelServer
from tests.workshop import Workshop, again, passes, payloads

pytestmark = pytest.mark.django_db(transaction=True)

ADD = Call("utility__calculate", {"operation": "add", "a": 1, "b": 2})


def usage(asked: int, answered: int) -> dict[str, int]:
    return {"prompt_tokens": asked, "completion_tokens": answered}


def priced(workshop: Workshop, **prices: tuple[str, str]) -> None:
    """Set the prices of these models; `every_other` sets the price of all other models."""
    provider = workshop.employee.provider
    provider.prices = {
        "*" if model == "every_other" else model: {"input": asked, "output": answered}
        for model, (asked, answered) in prices.items()
    }
    provider.save()


def two_passes(workshop: Workshop, model: ModelServer) -> Run:
    model.enqueue(
        Response(calls=(ADD,), usage=usage(1234, 56)), Response(text="3", usage=usage(2000, 7))
    )
    return workshop.work()


@feature("Costs, budgets, long runs", "Exact cost of each pass and run", "agents/runs/budgets.py")
def test_the_cost_of_a_pass_and_of_the_run_equals_tokens_times_prices(
    workshop: Workshop, model: ModelServer
) -> None:
    priced(workshop, fake=("2.5", "10"), every_other=("1000", "1000"))
    run = two_passes(workshop, model)
    assert [each.cost_micros for each in passes(run)] == [3085 + 560, 5000 + 70]
    assert run.cost_micros == 8715
    (finished,) = payloads(run, "run_finished")
    assert (finished["cost"], finished["currency"]) == (0.008715, "USD")


def test_a_fraction_of_a_millionth_is_rounded_up(workshop: Workshop, model: ModelServer) -> None:
    priced(workshop, every_other=("0.000001", "0"))
    run = two_passes(workshop, model)
    assert [each.cost_micros for each in passes(run)] == [1, 1]


def test_a_run_without_a_price_has_an_unknown_cost_and_not_zero(
    workshop: Workshop, model: ModelServer
) -> None:
    priced(workshop, another=("2.5", "10"))
    run = two_passes(workshop, model)
    assert run.cost_micros == 0
    assert payloads(run, "run_finished")[0]["cost"] is None


def test_a_price_of_zero_is_a_known_price(workshop: Workshop, model: ModelServer) -> None:
    priced(workshop, fake=("0", "0"))
    assert payloads(two_passes(workshop, model), "run_finished")[0]["cost"] == 0


def test_a_changed_price_does_not_affect_earlier_costs(
    workshop: Workshop, model: ModelServer
) -> None:
    priced(workshop, fake=("1", "1"))
    run = two_passes(workshop, model)
    priced(workshop, fake=("100", "100"))
    model.enqueue(Response(text="Yes.", usage=usage(10, 1)))
    run = workshop.drive(workshop.say(run))
    assert [each.cost_micros for each in passes(run)] == [1290, 2007, 1100]
    assert again(run).cost_micros == 4397


CACHED = (
    {"prompt_tokens_details": {"cached_tokens": 1000}},
    {"prompt_cache_hit_tokens": 1000},
    {"cached_tokens": 1000},
)


class TestCachedInput:
    def price(self, workshop: Workshop, **cached: str) -> None:
        provider = workshop.employee.provider
        provider.prices = {"fake": {"input": "2", "output": "10", **cached}}
        provider.save()

    @pytest.mark.parametrize("where", CACHED, ids=["OpenAI", "DeepSeek", "small server"])
    def test_is_charged_at_its_own_price(
        self, workshop: Workshop, model: ModelServer, where: dict[str, object]
    ) -> None:
        self.price(workshop, cached="0.5")
        model.enqueue(Response(text="Yes.", usage={**usage(1234, 56), **where}))
        run = workshop.work()
        assert [(each.cached_tokens, each.cost_micros) for each in passes(run)] == [
            (1000, 2 * 234 + 500 + 560)
        ]
        assert run.cost_micros == 1528
        assert (run.input_tokens, run.output_tokens) == (1234, 56)

    def test_costs_as_much_as_other_input_unless_a_price_is_set_for_it(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        self.price(workshop)
        model.enqueue(Response(text="Yes.", usage={**usage(1234, 56), **CACHED[0]}))
        assert workshop.work().cost_micros == 2 * 1234 + 560

    def test_never_exceeds_the_whole_input_even_if_the_server_reports_more(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        self.price(workshop, cached="0.5")
        model.enqueue(Response(text="Yes.", usage={**usage(100, 1), **CACHED[0]}))
        assert workshop.work().cost_micros == 50 + 10

    def test_is_charged_at_its_own_price_in_an_unusable_response(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        self.price(workshop, cached="0.5")
        model.enqueue(Response(usage={**usage(1234, 56), **CACHED[0]}))
        run = workshop.work()
        assert not passes(run)
        assert run.cost_micros == 1528
        assert payloads(run, "answer_unusable")[0]["cost"] == 0.001528
