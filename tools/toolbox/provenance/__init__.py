"""Provenance: where the values in a call's params were seen before, found by exact and normalized matching."""

from tools.toolbox.provenance.matching import SeenText, SourceIndex, carries_own_data, trace
from tools.toolbox.provenance.parts import list_offered
from tools.toolbox.provenance.sightings import Provenance, SeenIn, Sighting

__all__ = [
    "Provenance",
    "SeenIn",
    "SeenText",
    "Sighting",
    "SourceIndex",
    "carries_own_data",
    "list_offered",
    "trace",
]
