"""The soak of rules with conditions: random histories of a card, judged by a second implementation.

`python -m tests.soak.rules` is a part of `python -m tests.soak`; it does not need a database.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter

from tests.tools.toolbox.conditioned_histories import play_history

HISTORIES = 100_000


def main() -> int:
    """Run the soak; return 0 if both implementations agreed in every state of every history."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=HISTORIES)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    print(f"rules with conditions, seed {options.seed}", flush=True)
    began = time.monotonic()
    ends = Counter(
        play_history(random.Random(f"{options.seed} {number}"))
        for number in range(options.histories)
    )
    seconds = time.monotonic() - began
    print(f"  {options.histories:,} histories alike {dict(ends)}, {seconds:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
