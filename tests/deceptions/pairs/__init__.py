"""Planted deceptions of classes that `tests/deceptions/plants.py` does not have, each beside an
honest twin."""
