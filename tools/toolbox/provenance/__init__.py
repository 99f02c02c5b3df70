"""Provenance: where a call's values were seen before, found by exact and normalized matching."""

from tools.toolbox.provenance.field_values import FieldValues, mark_fields
from tools.toolbox.provenance.matching import OwnData, SeenText, SourceIndex, find_own_data, trace
from tools.toolbox.provenance.parts import list_leaves, list_offered, make_key
from tools.toolbox.provenance.sightings import Provenance, SeenIn, Sighting
from tools.toolbox.provenance.unseen_names import find_unseen_names
from tools.toolbox.provenance.unseen_text import has_unseen_text

__all__ = [
    "FieldValues",
    "OwnData",
    "Provenance",
    "SeenIn",
    "SeenText",
    "Sighting",
    "SourceIndex",
    "find_own_data",
    "find_unseen_names",
    "has_unseen_text",
    "list_leaves",
    "list_offered",
    "make_key",
    "mark_fields",
    "trace",
]
