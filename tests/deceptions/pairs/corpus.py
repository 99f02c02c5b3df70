"""All pairs, by class."""

from __future__ import annotations

from tests.deceptions.pairing import Pair
from tests.deceptions.pairs.actions import ACTIONS
from tests.deceptions.pairs.addresses import ADDRESSES
from tests.deceptions.pairs.letters import LETTERS
from tests.deceptions.pairs.values import VALUES
from tests.deceptions.pairs.words import WORDS

PAIRS: tuple[Pair, ...] = (*LETTERS, *ADDRESSES, *VALUES, *ACTIONS, *WORDS)
KINDS = tuple(dict.fromkeys(pair.kind for pair in PAIRS))
