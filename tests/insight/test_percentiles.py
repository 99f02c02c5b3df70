"""The median and the 95th percentile can be estimated from durations that are counted in
buckets."""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from statistics import quantiles

import pytest

from agents.insight import figures
from agents.insight.models import BUCKETS
from tests.features import feature


class TestPercentiles:
    @feature(
        "Figures and metrics",
        "p50 and p95, exact to the width of a bucket",
        "agents/insight/figures.py",
    )
    @pytest.mark.parametrize("seed", range(20))
    def test_are_accurate_within_the_width_of_a_bucket(self, seed: int) -> None:
        chance = random.Random(seed)
        longest = chance.choice([10, 3_000, 400_000, 20_000_000])
        took = [round(longest ** chance.random()) for _ in range(chance.choice([1, 2, 50, 2_000]))]
        ends = list(BUCKETS.values())
        histogram = [0] * (len(ends) + 1)
        for each in took:
            histogram[bisect_left(ends, each)] += 1
        ordered = sorted(took)
        for share in (0.5, 0.95):
            about = figures.estimate_percentile(histogram, share, max(took))
            true = ordered[math.ceil(share * len(took)) - 1]
            assert about is not None
            start, end = bucket_of(true, max(took))
            assert start <= about <= end
        if len(took) == 2_000:
            exact = quantiles(took, n=20, method="inclusive")
            for cut, share in ((9, 0.5), (18, 0.95)):
                about = figures.estimate_percentile(histogram, share, max(took))
                start, end = bucket_of(exact[cut], max(took))
                assert start <= round(exact[cut]) <= end
                assert about is not None
                assert abs(about - exact[cut]) <= end - start

    def test_are_none_without_durations(self) -> None:
        assert figures.estimate_percentile([0] * (len(BUCKETS) + 1), 0.5, 0) is None

    def test_never_exceed_the_duration_if_there_is_only_one(self) -> None:
        histogram = [0] * (len(BUCKETS) + 1)
        histogram[-1] = 1
        assert figures.estimate_percentile(histogram, 0.95, 2_000_000) == 1_990_000


def bucket_of(ms: float, slowest: int) -> tuple[int, int]:
    """Return the start and end, in ms, of the bucket in which this duration is counted."""
    ends = [0, *BUCKETS.values(), max(slowest, 1_800_001)]
    place = max(1, bisect_left(ends, ms))
    return ends[place - 1], ends[place]


def test_the_success_rate_is_100_percent_only_without_failures() -> None:
    assert figures.Figures(succeeded=9_999, failed=1).success_percent == 99
    assert figures.Figures(succeeded=1, failed=9_999).success_percent == 1
    assert figures.Figures(succeeded=3).success_percent == 100
    assert figures.Figures(failed=3).success_percent == 0
    assert figures.Figures().success_percent is None
